"""Differentiable colour distortion (the paper's appendix of that name).

Every function is batched over images, takes one parameter for each image, and keeps the promoted
floating dtype of its arguments. Inside, a picture is a list of three colour planes `[n, h, w]`:
on CPU derivatives in alpha are then about twice as fast as with arithmetic on the channel axis, and
no matrix unit rounds the products on hardware where it would.
"""

from collections.abc import Sequence
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.transforms.pictures import check_alpha, check_images, check_parameter, clip

Variant = Literal["paper", "authors"]
Planes = list[Array]

NAMES = ("brightness", "contrast", "saturation", "hue")
"""Names of alpha's components."""

GREY = (0.299, 0.587, 0.114)

# (T_YIQ, T_RGB): the appendix's constants, and the rounder ones of the authors' code. Neither pair
# multiplies to exactly the identity: at zero turns a pixel moves by up to 9e-4 (1.4e-3).
_YIQ = {
    "paper": (
        ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112)),
        ((1, 0.956, 0.619), (1, -0.272, -0.647), (1, -1.106, 1.703)),
    ),
    "authors": (
        ((0.299, 0.587, 0.114), (0.596, -0.274, -0.321), (0.211, -0.523, 0.311)),
        ((1, 0.956, 0.621), (1, -0.272, -0.647), (1, -1.107, 1.705)),
    ),
}


def adjust_brightness(
    images: Float[Array | np.ndarray, "n h w 3"], factor: Float[Array | np.ndarray, " n"]
) -> Float[Array, "n h w 3"]:
    """Multiplies each image by its factor and clips to [0, 1].

    Args:
      images: values in [0, 1], `[n, h, w, 3]`.
      factor: one for each image, `[n]`; 1 changes nothing.

    Returns:
      x·factor, clipped, `[n, h, w, 3]`.
    """
    images = check_colours(images)
    factor = check_parameter(factor, "factor", len(images))
    return _join(_brightness(_split(images), _spread(factor)))


def adjust_contrast(
    images: Float[Array | np.ndarray, "n h w 3"], factor: Float[Array | np.ndarray, " n"]
) -> Float[Array, "n h w 3"]:
    """Moves each image away from (or towards) the mean of its greyscale version.

    Args:
      images: values in [0, 1], `[n, h, w, 3]`.
      factor: one for each image, `[n]`; 1 changes nothing, 0 leaves one grey.

    Returns:
      x·factor + mean(x_gs)·(1 - factor), clipped to [0, 1], `[n, h, w, 3]`.
    """
    images = check_colours(images)
    factor = check_parameter(factor, "factor", len(images))
    return _join(_contrast(_split(images), _spread(factor)))


def adjust_saturation(
    images: Float[Array | np.ndarray, "n h w 3"], factor: Float[Array | np.ndarray, " n"]
) -> Float[Array, "n h w 3"]:
    """Moves each pixel away from (or towards) its grey.

    Args:
      images: values in [0, 1], `[n, h, w, 3]`.
      factor: one for each image, `[n]`; 1 changes nothing, 0 leaves the greyscale picture.

    Returns:
      x·factor + x_gs·(1 - factor), clipped to [0, 1], `[n, h, w, 3]`.
    """
    images = check_colours(images)
    factor = check_parameter(factor, "factor", len(images))
    return _join(_saturation(_split(images), _spread(factor)))


def adjust_hue(
    images: Float[Array | np.ndarray, "n h w 3"],
    turns: Float[Array | np.ndarray, " n"],
    *,
    variant: Variant = "paper",
) -> Float[Array, "n h w 3"]:
    """Rotates the colour plane (I, Q) of each image: x_hue = T_RGB · R(2π·turns) · T_YIQ · x.

    Args:
      images: values in [0, 1], `[n, h, w, 3]`.
      turns: full turns, one for each image, `[n]`; at 0 the map is the identity up to 9e-4
        (`paper`) or 1.4e-3 (`authors`), because the matrices are rounded.
      variant: `paper` clips to [0, 1]; `authors` has rounder constants and does not clip.

    Returns:
      The rotated images, `[n, h, w, 3]`.
    """
    check_variant(variant)
    images = check_colours(images)
    turns = check_parameter(turns, "turns", len(images))
    return _join(_hue(_split(images), turns, variant))


def greyscale(images: Float[Array | np.ndarray, "n h w 3"]) -> Float[Array, "n h w 1"]:
    """The luma of each pixel, x_gs = 0.299 r + 0.587 g + 0.114 b.

    Args:
      images: any floats, `[n, h, w, 3]`.

    Returns:
      One channel, `[n, h, w, 1]`.
    """
    return _grey(_split(check_colours(images)))[..., None]


def colour_jitter(
    images: Float[Array | np.ndarray, "n h w 3"],
    alpha: Float[Array | np.ndarray, "n 4"],
    *,
    variant: Variant = "paper",
) -> Float[Array, "n h w 3"]:
    """Brightness, contrast, saturation and hue, in this order.

    Args:
      images: values in [0, 1], `[n, h, w, 3]`.
      alpha: (brightness, contrast, saturation, hue) of each image, `[n, 4]`; (1, 1, 1, 0) is
        neutral up to the hue error of `adjust_hue`.
      variant: which hue, see `adjust_hue`.

    Returns:
      The distorted images, `[n, h, w, 3]`; in [0, 1] for `paper`.
    """
    check_variant(variant)
    images = check_colours(images)
    alpha = check_alpha(alpha, len(images), NAMES)
    brightness, contrast, saturation, hue = alpha.T
    planes = _brightness(_split(images), _spread(brightness))
    planes = _contrast(planes, _spread(contrast))
    planes = _saturation(planes, _spread(saturation))
    return _join(_hue(planes, hue, variant))


# Operations on planes; factors come as [n, 1, 1] ---------------------------------------------


def _brightness(planes: Planes, factor: Array) -> Planes:
    return [clip(plane * factor) for plane in planes]


def _contrast(planes: Planes, factor: Array) -> Planes:
    # The grey of the mean is the mean of the grey, and three sums are cheaper than a grey plane.
    mean_grey = _grey([plane.mean((1, 2), keepdims=True) for plane in planes])
    return [clip(plane * factor + mean_grey * (1 - factor)) for plane in planes]


def _saturation(planes: Planes, factor: Array) -> Planes:
    grey = _grey(planes)
    return [clip(plane * factor + grey * (1 - factor)) for plane in planes]


def _hue(planes: Planes, turns: Array, variant: Variant) -> Planes:
    matrix = _hue_matrix(turns, variant)
    rotated = [_mix([_spread(matrix[:, row, k]) for k in range(3)], planes) for row in range(3)]
    return rotated if variant == "authors" else [clip(plane) for plane in rotated]


def _hue_matrix(turns: Float[Array, " n"], variant: Variant) -> Float[Array, "n 3 3"]:
    """T_RGB · R · T_YIQ, which is affine in (cos θ, sin θ)."""
    to_yiq, to_rgb = (np.array(matrix) for matrix in _YIQ[variant])
    luma = np.outer(to_rgb[:, 0], to_yiq[0])
    cosine = to_rgb[:, 1:] @ to_yiq[1:]
    sine = to_rgb[:, 1:] @ np.array([[0, -1], [1, 0]]) @ to_yiq[1:]
    unmoved, along, across = (jnp.asarray(m, turns.dtype)[None] for m in (luma, cosine, sine))
    theta = _spread(2 * np.pi * turns)
    return unmoved + jnp.cos(theta) * along + jnp.sin(theta) * across


def _grey(planes: Planes) -> Array:
    return _mix(GREY, planes)


def _mix(weights: Sequence[Array | float], planes: Planes) -> Array:
    red, green, blue = planes
    return weights[0] * red + weights[1] * green + weights[2] * blue


def _spread(parameter: Float[Array, " n"]) -> Float[Array, "n 1 1"]:
    return parameter[:, None, None]


def _split(images: Float[Array, "n h w 3"]) -> Planes:
    return [images[..., channel] for channel in range(3)]


def _join(planes: Planes) -> Float[Array, "n h w 3"]:
    return jnp.stack(planes, axis=-1)


# Validation ------------------------------------------------------------------------------------


def check_colours(images: Array | np.ndarray) -> Float[Array, "n h w 3"]:
    """The images as a JAX array, or a ValueError if they are not a batch of float RGB images."""
    images = check_images(images)
    if images.shape[-1] != 3:
        raise ValueError(
            f"images have {images.shape[-1]} channels: colour operations need three, red, green "
            "and blue; leave them out for other images"
        )
    return images


def check_variant(variant: str) -> None:
    """Raises ValueError unless the variant is one of the two."""
    if variant not in _YIQ:
        raise ValueError(f"unknown variant {variant!r}: use 'paper' or 'authors'")
