"""Transformations from plain options."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from invclr_jax import importing
from invclr_jax.transforms import presets
from invclr_jax.transforms.base import Transform
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.spirograph import SpirographTransform

HOME = "invclr_jax.transforms"


def _image(options: importing.Options) -> Transform:
    return ImageTransform(
        strength=options["strength"],
        variant=options["variant"],
        jitter_probability=options["jitter_probability"],
        grey_probability=options["grey_probability"],
        **_of_any_preset(options),
    )


def _of_any_preset(options: importing.Options) -> dict[str, Any]:
    more = dict(options.get("options") or {})
    unknown = sorted(set(more) - {field.name for field in dataclasses.fields(ImageTransform)})
    if unknown:
        raise ValueError(
            f"config.transform.options has {unknown[0]!r}, which ImageTransform does not take"
        )
    return {
        "size": options["size"],
        "mean": tuple(options["mean"]),
        "std": tuple(options["std"]),
        "penalised": tuple(options.get("penalised", ("colour",))),
        **more,
    }


def _preset(name: str, options: importing.Options) -> Transform:
    return presets.preset(name, **_of_any_preset(options))


def _spirograph(options: importing.Options) -> Transform:
    return SpirographTransform(size=options["size"], normalise=options["normalise"])


TRANSFORMS: dict[str, Callable[[importing.Options], Transform]] = {
    "image": _image,
    "spirograph": _spirograph,
    **{name: functools.partial(_preset, name) for name in presets.PRESETS},
}
"""What `config.transform.name` can be: the paper's with every key of the config, Spirograph's, and
the presets of published methods, which bring their own strengths."""


def build_transform(options: importing.Options, *, trust: importing.Trust = None) -> Transform:
    """The transformation that `config.transform` describes.

    Args:
      options: `name`, one of `TRANSFORMS` with the keys it reads, or the import path of a
        transformation of one's own with `options`.
      trust: packages that an import path may be in; None for any.
    """
    name = options["name"]
    if name in TRANSFORMS:
        return TRANSFORMS[name](options)
    if not importing.is_path(name):
        raise ValueError(
            f"no transform {name!r}: use one of {', '.join(TRANSFORMS)}, or the import path of "
            "your own, package.module:Name"
        )
    if name.startswith(importing.UNNAMED):
        raise ValueError(
            f"the transform was passed as an object, {name.removeprefix(importing.UNNAMED)}, and "
            "cannot be made again from its name: pass it again, as transform="
        )
    transform = importing.build(name, options.get("options", {}), home=HOME, trust=trust)
    if not isinstance(transform, Transform):
        raise ValueError(
            f"{name} gives a {type(transform).__name__}: a transform has alpha, sample, apply and "
            "untransformed"
        )
    return transform
