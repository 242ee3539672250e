"""The fifteen common corruptions of Hendrycks and Dietterich (arXiv 1903.12261).

Strengths are those of the CIFAR-10-C files, lengths in pixels; they are kept at other sizes. All
follow the published definitions except frost, which is blended with six photographs there: ours is
drawn. Every picture has a random key of its own, so results do not depend on how many there are.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray

from invclr_jax.transforms.colour import check_colours
from invclr_jax.transforms.corruptions import blurs, digital, noise, weather
from invclr_jax.transforms.pictures import Images, as_floats

SEVERITIES = (1, 2, 3, 4, 5)
_AT_ONCE = 500


class _Corruption(NamedTuple):
    """A function of (pictures [n,h,w,3] in [0,1], keys [n], strength), and five strengths.

    One that runs on the `host` takes and returns NumPy arrays.
    """

    function: Callable[..., Any]
    strengths: tuple[Any, ...]
    host: bool = False


_CORRUPTIONS = {
    "gaussian_noise": _Corruption(noise.gaussian, (0.04, 0.06, 0.08, 0.09, 0.10)),
    "shot_noise": _Corruption(noise.shot, (500, 250, 100, 75, 50), host=True),
    "impulse_noise": _Corruption(noise.impulse, (0.01, 0.02, 0.03, 0.05, 0.07)),
    # radius and antialiasing of a disk
    "defocus_blur": _Corruption(
        blurs.defocus, ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1))
    ),
    # standard deviation, number of shuffles
    "glass_blur": _Corruption(blurs.glass, ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))),
    # radius, standard deviation
    "motion_blur": _Corruption(blurs.motion, ((6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5))),
    # end of the range of zooms
    "zoom_blur": _Corruption(blurs.zoom, (1.06, 1.11, 1.16, 1.21, 1.26)),
    # mean and deviation of the noise, its zoom and threshold, radius and deviation of the motion,
    # share of the picture
    "snow": _Corruption(
        weather.snow,
        (
            (0.1, 0.2, 1.0, 0.6, 8, 3.0, 0.95),
            (0.1, 0.2, 1.0, 0.5, 10, 4.0, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4.0, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6.0, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12.0, 0.8),
        ),
    ),
    # shares of the picture and of the frost
    "frost": _Corruption(
        weather.frost, ((1.0, 0.2), (1.0, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))
    ),
    # thickness, decay of the roughness
    "fog": _Corruption(weather.fog, ((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75))),
    "brightness": _Corruption(digital.brightness, (0.05, 0.1, 0.15, 0.2, 0.3)),
    "contrast": _Corruption(digital.contrast, (0.75, 0.5, 0.4, 0.3, 0.15)),
    # displacement, its smoothness, displacement of the affine map's corners: shares of the size
    "elastic_transform": _Corruption(
        digital.elastic,
        ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    ),
    "pixelate": _Corruption(digital.pixelate, (0.95, 0.9, 0.85, 0.75, 0.65)),
    "jpeg_compression": _Corruption(digital.jpeg, (80, 65, 58, 50, 40), host=True),
}
NAMES = tuple(_CORRUPTIONS)
"""The corruptions, as the files of CIFAR-10-C are called."""


def corrupt(images: Images, name: str, severity: int, key: PRNGKeyArray) -> Array | np.ndarray:
    """Corrupts pictures.

    Args:
      images: 8-bit, or floats in [0, 1], `[n, h, w, 3]`.
      name: one of `NAMES`.
      severity: from 1 to 5.
      key: of the randomness; picture i depends on (key, i) alone.

    Returns:
      Pictures of the same kind: 8-bit ones (fractions cut off, as in the published files), or
      floats in [0, 1].
    """
    _check(name, severity)
    pixels = np.asarray(images)
    check_colours(as_floats(pixels[:1]))
    size = min(_AT_ONCE, max(len(pixels), 1))
    parts = [
        _part(pixels, np.arange(start, start + size), name, severity, key)
        for start in range(0, len(pixels), size)
    ]
    return np.concatenate(parts) if parts else pixels


def _part(
    pixels: np.ndarray, rows: np.ndarray, name: str, severity: int, key: PRNGKeyArray
) -> np.ndarray:
    """Some of the pictures; the last part is filled up, so that all are of one shape."""
    used = int((rows < len(pixels)).sum())
    chosen = pixels[np.minimum(rows, len(pixels) - 1)]
    keys = jax.vmap(lambda row: jax.random.fold_in(key, row))(jnp.asarray(rows))
    function, strengths, host = _CORRUPTIONS[name]
    strength = strengths[severity - 1]
    if host:
        floats = np.asarray(as_floats(chosen))
        seeds = np.asarray(jax.random.key_data(keys))
        result = function(floats[:used], seeds[:used], strength)
    else:
        result = _on_device(chosen, keys, name, severity)[:used]
    return _like(np.clip(np.asarray(result), 0, 1), pixels.dtype)


@jax.jit(static_argnames=("name", "severity"))
def _on_device(images: Array, keys: Key[Array, " n"], name: str, severity: int) -> Array:
    function, strengths, _ = _CORRUPTIONS[name]
    return function(as_floats(images), keys, strengths[severity - 1])


def _like(pictures: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype != np.uint8:
        return pictures.astype(dtype)
    return (255 * pictures + 1e-3).astype(np.uint8)  # float32 may end just below a whole number


def _check(name: str, severity: int) -> None:
    if name not in _CORRUPTIONS:
        raise ValueError(f"no corruption {name!r}: use one of {', '.join(NAMES)}")
    if severity not in SEVERITIES:
        raise ValueError(f"severity is {severity!r}: use an integer from 1 to 5")
