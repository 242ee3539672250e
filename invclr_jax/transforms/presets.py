"""Transforms of published methods, by name.

All of them crop, flip, jitter and grey; some also blur and solarise. `penalised` says what alpha is
made of: colour, crop, affine, and where there is one, blur.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from invclr_jax.transforms.base import Compose, Sometimes, Transform, frozen
from invclr_jax.transforms.effects import Blur, Solarise
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.normalise import Normalise

BLUR = "blur"

# How often each blurs and solarises, and what its other parts are unless other options are given.
_BYOL = {"strength": 0.5, "jitter_widths": (0.8, 0.8, 0.4, 0.2)}
_PRESETS: dict[str, tuple[float, float, dict[str, Any]]] = {
    # Foster et al. 2021, and SimCLR on CIFAR: no blur.
    "paper": (0, 0, {"strength": 0.5}),
    # Chen et al. 2020 (arXiv 2002.05709), appendix A: strength 1, blur every second time.
    "simclr": (0.5, 0, {"strength": 1.0}),
    # Chen et al. 2020 (arXiv 2003.04297): jitter 0.4, 0.4, 0.4, 0.1, crops of at least 0.2.
    "moco_v2": (0.5, 0, {"strength": 0.5, "crop_scale": (0.2, 1.0)}),
    # Grill et al. 2020 (arXiv 2006.07733), table 6: T and T'.
    "byol_first": (1, 0, _BYOL),
    "byol_second": (0.1, 0.2, _BYOL),
    # The same on CIFAR (solo-learn): no blur.
    "cifar_first": (0, 0, _BYOL),
    "cifar_second": (0, 0.2, _BYOL),
    # Bardes et al. 2022 (arXiv 2105.04906) on CIFAR (solo-learn).
    "cifar_vicreg": (0, 0.1, _BYOL | {"crop_scale": (0.2, 1.0)}),
    # Tong et al. 2023 (arXiv 2304.03977): patches of a quarter of the area.
    "emp": (
        0.1,
        0.1,
        {
            "strength": 0.5,
            "jitter_widths": (0.8, 0.8, 0.8, 0.4),
            "crop_scale": (0.25, 0.25),
            "crop_ratio": (1, 1),
        },
    ),
}
PRESETS = tuple(_PRESETS)
"""The names that `preset` knows."""


def preset(
    name: str,
    *,
    size: int | tuple[int, int],
    mean: Sequence[float] | np.ndarray,
    std: Sequence[float] | np.ndarray,
    penalised: Sequence[str] = ("colour",),
    **options: Any,
) -> Transform:
    """The transform of a published method.

    Args:
      name: one of `PRESETS`.
      size: side of the result in pixels, or its (height, width).
      mean: of each channel.
      std: of each channel.
      penalised: what alpha is made of: colour, crop, affine, blur.
      **options: of `ImageTransform`, in place of the preset's own.

    Returns:
      An `ImageTransform`, or a composition that starts with one.
    """
    if name not in _PRESETS:
        raise ValueError(f"no preset {name!r}: use one of {', '.join(PRESETS)}")
    blur, solarise, defaults = _PRESETS[name]
    if BLUR in penalised and not blur:
        raise ValueError(f"penalised is {tuple(penalised)}, but the preset {name!r} does not blur")
    groups = tuple(group for group in penalised if group != BLUR)
    options = {**defaults, **options, "size": size, "penalised": groups}
    if not blur and not solarise:
        return ImageTransform(mean=mean, std=std, **options)
    # Blur and solarisation come before normalisation.
    first = ImageTransform(mean=[0] * len(mean), std=[1] * len(std), **options)
    parts: list[Transform] = [first]
    if blur:
        blurred: Transform = Sometimes(Blur(), blur)
        parts.append(blurred if BLUR in penalised else frozen(blurred))
    if solarise:
        parts.append(Sometimes(Solarise(), solarise))
    return Compose([*parts, Normalise(mean, std)])


def views(name: str, **options: Any) -> tuple[Transform, Transform]:
    """The transforms of the two views of a method: different ones for `byol`, else the same twice.

    Args:
      name: one of `PRESETS`, or `byol` for (`byol_first`, `byol_second`).
      **options: of `preset`.
    """
    build: Callable[[str], Transform] = lambda which: preset(which, **options)  # noqa: E731
    if name == "byol":
        return build("byol_first"), build("byol_second")
    both = build(name)
    return both, both
