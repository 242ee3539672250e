"""Blur, sharpness, gamma, noise, solarisation and cut-outs; any number of channels.

Each function takes one parameter for each picture and is differentiable in it, except where it is a
threshold or a place.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from invclr_jax.transforms.geometry import mix
from invclr_jax.transforms.pictures import (
    check_alpha,
    check_images,
    check_parameter,
    clip,
    spread,
)

_LEAST_VARIANCE = 0.01  # neighbours then weigh e^-50
_KEEP, _NEIGHBOUR = 5 / 13, 1 / 13  # Pillow's ImageFilter.SMOOTH


def gaussian_blur(
    images: Float[Array | np.ndarray, "n h w c"], sigma: Float[Array | np.ndarray, " n"]
) -> Float[Array, "n h w c"]:
    """Convolves with a Gaussian, along rows and then along columns; edge pixels are repeated.

    Args:
      images: `[n, h, w, c]`.
      sigma: standard deviation in pixels, `[n]`; its sign does not matter, and below 0.1 pictures
        stay as they are.

    Returns:
      `[n, h, w, c]` in the wider of the dtypes of images and sigma.
    """
    images = check_images(images)
    sigma = check_parameter(sigma, "sigma", len(images))
    dtype = jnp.promote_types(jnp.result_type(images, sigma), jnp.float32)
    variance = jnp.maximum(sigma.astype(dtype) ** 2, _LEAST_VARIANCE)
    rows, columns = (_gaussian(variance, length) for length in images.shape[1:3])
    return mix(images.astype(dtype), rows, columns)


def _gaussian(variance: Float[Array, " n"], length: int) -> Float[Array, "n {length} {length}"]:
    """The blur of a line of pixels as a matrix.

    The first and last pixel also get the weights of all that lies beyond them, up to another
    length away.
    """
    steps = jnp.arange(2 * length, dtype=variance.dtype)
    kernel = jnp.exp(-(steps[None] ** 2) / (2 * variance[:, None]))
    kernel = kernel / (2 * kernel.sum(axis=1, keepdims=True) - kernel[:, :1])
    tails = jnp.cumsum(kernel[:, ::-1], axis=1)[:, ::-1]  # at and beyond each distance
    places = np.arange(length)
    inner = kernel[:, np.abs(places[:, None] - places[None])]
    if length == 1:
        return jnp.ones_like(inner)
    first, last = tails[:, places, None], tails[:, places[::-1], None]
    return jnp.concatenate([first, inner[:, :, 1:-1], last], axis=2)


def adjust_sharpness(
    images: Float[Array | np.ndarray, "n h w c"], factor: Float[Array | np.ndarray, " n"]
) -> Float[Array, "n h w c"]:
    """Moves each image away from (or towards) its smoothed version, as Pillow's `Sharpness`.

    Args:
      images: values in [0, 1], `[n, h, w, c]`.
      factor: one for each image, `[n]`; 1 changes nothing, 0 smooths, 2 sharpens.

    Returns:
      smooth + factor·(x - smooth), clipped to [0, 1]; edge pixels are left alone as in Pillow.
    """
    images = check_images(images)
    factor = check_parameter(factor, "factor", len(images))
    if min(images.shape[1:3]) < 3:
        return clip(images)
    total = sum(
        images[:, top : images.shape[1] - 2 + top, left : images.shape[2] - 2 + left]
        for top in range(3)
        for left in range(3)
    )
    inside = images[:, 1:-1, 1:-1]
    smooth = _NEIGHBOUR * total + (_KEEP - _NEIGHBOUR) * inside
    sharpened = smooth + spread(factor) * (inside - smooth)
    return clip(images.astype(sharpened.dtype).at[:, 1:-1, 1:-1].set(sharpened))


def adjust_gamma(
    images: Float[Array | np.ndarray, "n h w c"], log2_gamma: Float[Array | np.ndarray, " n"]
) -> Float[Array, "n h w c"]:
    """Raises pixels to the power 2^log2_gamma.

    Args:
      images: values in [0, 1], `[n, h, w, c]`.
      log2_gamma: one for each image, `[n]`; 0 changes nothing, 1 squares, -1 takes roots.

    Returns:
      `[n, h, w, c]`; black stays black, and its derivative is 0.
    """
    images = check_images(images)
    gamma = spread(jnp.exp2(check_parameter(log2_gamma, "log2_gamma", len(images))))
    black = images <= 0
    return jnp.where(black, 0, jnp.where(black, 1, images) ** gamma)


def add_noise(
    images: Float[Array | np.ndarray, "n h w c"],
    strength: Float[Array | np.ndarray, " n"],
    seeds: UInt32[Array | np.ndarray, "n 2"],
) -> Float[Array, "n h w c"]:
    """Adds independent normal noise to every value and clips to [0, 1].

    Args:
      images: values in [0, 1], `[n, h, w, c]`.
      strength: standard deviation of the noise, `[n]`.
      seeds: one for each image: data of random keys, `[n, 2]`.

    Returns:
      `[n, h, w, c]`; the noise of an image is a function of its seed and shape.
    """
    images = check_images(images)
    strength = check_parameter(strength, "strength", len(images))
    keys = jax.random.wrap_key_data(jnp.asarray(seeds), impl="threefry2x32")
    draw = jax.vmap(lambda key: jax.random.normal(key, images.shape[1:], images.dtype))
    return clip(images + spread(strength) * draw(keys))


def solarise(
    images: Float[Array | np.ndarray, "n h w c"], threshold: Float[Array | np.ndarray, " n"]
) -> Float[Array, "n h w c"]:
    """Inverts values at or above a threshold, as Pillow's `solarize`.

    Args:
      images: values in [0, 1], `[n, h, w, c]`.
      threshold: one for each image, `[n]`.
    """
    images = check_images(images)
    threshold = spread(check_parameter(threshold, "threshold", len(images)))
    return jnp.where(images >= threshold, 1 - images, images)


def cutout(
    images: Float[Array | np.ndarray, "n h w c"],
    centre: Float[Array | np.ndarray, "n 2"],
    side: float,
    fill: float = 0.5,
) -> Float[Array, "n h w c"]:
    """Covers a square; near the edge a part of it lies outside.

    Args:
      images: `[n, h, w, c]`.
      centre: (down, right) of each square as shares of height and width, `[n, 2]`.
      side: of the square, as a share of the shorter side of the image.
      fill: the value that covers.
    """
    images = check_images(images)
    down, right = check_alpha(centre, len(images), ("down", "right")).T
    half = side * min(images.shape[1:3]) / 2
    rows, columns = (jnp.arange(length)[None] + 0.5 for length in images.shape[1:3])
    in_rows = jnp.abs(rows - down[:, None] * images.shape[1]) <= half
    in_columns = jnp.abs(columns - right[:, None] * images.shape[2]) <= half
    covered = in_rows[:, :, None] & in_columns[:, None]
    return jnp.where(covered[..., None], jnp.asarray(fill, images.dtype), images)
