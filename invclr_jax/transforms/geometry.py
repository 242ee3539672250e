"""Crops and flips on the device, with static shapes; `affine` is in warping.

A crop is resampled by two small matrix products an image, rows then columns. Their weights are
those of Pillow's antialiased bilinear filter, which torchvision's RandomResizedCrop uses; a flip
reverses the columns' weights and costs nothing.

There are two crops. The random resized crop of whole pixels is beta: `sample_crops` draws,
`crop_boxes` turns the draws into boxes once the size of the images is known, `crop_and_resize`
applies them. `crop` has parameters to differentiate in: alpha.

Measured (`benchmarks/resize_quality.py`): equal to Pillow's bilinear filter in floats, within
one level of 255 of it in 8 bits, where Pillow rounds after each pass. Its Lanczos filter differs by
1.5 levels on average for crops of 32×32 pictures and by 4.5 for crops of 96×96 brought to 32×32.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num, PRNGKeyArray

from invclr_jax.transforms.pictures import check_alpha, check_coins, check_images
from invclr_jax.transforms.warping import affine

__all__ = [
    "Crops",
    "affine",
    "crop",
    "crop_and_resize",
    "crop_boxes",
    "horizontal_flip",
    "resize",
    "sample_crops",
]

ATTEMPTS = 10
SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)

NAMES = ("crop_down", "crop_right", "crop_log_area", "crop_log_aspect")
"""Names of `crop`'s parameters."""


class Crops(NamedTuple):
    """Random crops of images whose size is not known yet.

    Attributes:
      area: share of the image's area, one for each attempt, `[n, attempts]`.
      aspect: width/height in pixels, one for each attempt, `[n, attempts]`.
      position: where the box lies in the room it has, vertically and horizontally, in [0, 1),
        `[n, 2]`.
    """

    area: Float[Array, "n attempts"]
    aspect: Float[Array, "n attempts"]
    position: Float[Array, "n 2"]


def sample_crops(
    key: PRNGKeyArray,
    n: int,
    *,
    scale: Sequence[float] = SCALE,
    ratio: Sequence[float] = RATIO,
) -> Crops:
    """Draws `n` crops: area uniform in `scale`, aspect log-uniform in `ratio`, position uniform.

    Several attempts are drawn for each because some (area, aspect) pairs stick out of the image;
    `crop_boxes` takes the first that fits. Drawing all of them at once keeps shapes static.
    """
    draws = jax.random.uniform(key, (n, 2 * ATTEMPTS + 2))
    area, log_aspect, position = jnp.split(draws, [ATTEMPTS, 2 * ATTEMPTS], axis=1)
    low, high = np.log(ratio).tolist()
    return Crops(
        area=scale[0] + (scale[1] - scale[0]) * area,
        aspect=jnp.exp(low + (high - low) * log_aspect),
        position=position,
    )


def crop_boxes(crops: Crops, height: int, width: int) -> Int[Array, "n 4"]:
    """The pixels that random crops cover in images of a given size, by torchvision's rule.

    The first attempt that fits is taken, or else the largest central box of an allowed aspect.

    Args:
      crops: draws of `sample_crops`.
      height: of the images.
      width: of the images.

    Returns:
      Whole pixels (top, left, height, width), inside the image, `[n, 4]`.
    """
    room = jnp.array([height, width])[None]
    side = jnp.sqrt(crops.area * (height * width))
    stretch = jnp.sqrt(crops.aspect)
    attempts = jnp.round(jnp.stack([side / stretch, side * stretch], axis=-1)).astype(int)
    fits = ((attempts > 0) & (attempts <= room[:, None])).all(axis=-1)
    first = jnp.take_along_axis(attempts, jnp.argmax(fits, axis=1)[:, None, None], axis=1)[:, 0]
    found = fits.any(axis=1)[:, None]
    box = jnp.where(found, first, jnp.array(_largest_box(height, width))[None])
    free = room - box
    anywhere = jnp.minimum(jnp.floor(crops.position * (free + 1)).astype(int), free)
    return jnp.concatenate([jnp.where(found, anywhere, free // 2), box], axis=1)


def _largest_box(height: int, width: int) -> tuple[int, int]:
    low, high = RATIO
    if width < low * height:
        return max(1, round(width / low)), width
    if width > high * height:
        return height, max(1, round(height * high))
    return height, width


def crop_and_resize(
    images: Float[Array | np.ndarray, "n h w c"],
    boxes: Num[Array | np.ndarray, "n 4"],
    flip: Bool[Array | np.ndarray, " n"] | None,
    size: tuple[int, int],
) -> Float[Array, "n height width c"]:
    """Cuts a box out of each image, resamples it to one size and mirrors it where asked.

    The filter is a triangle as wide as the coarser of the two grids, so that shrinking averages
    over all pixels. Only pixels of the box count, as if it had been cut out first. The box of the
    whole image with unchanged size is the identity.

    Args:
      images: `[n, h, w, c]`.
      boxes: (top, left, height, width) in pixels, `[n, 4]`; fractions are allowed.
      flip: whether to mirror left and right, `[n]`; None mirrors nothing.
      size: height and width of the result.

    Returns:
      `[n, height, width, c]` in the dtype of `images`.
    """
    images = check_images(images)
    n, height, width, _ = images.shape
    if np.shape(boxes) != (n, 4):
        raise ValueError(
            f"boxes have shape {np.shape(boxes)}, not {(n, 4)}: give (top, left, height, width) "
            f"for each of the {n} images"
        )
    flip = None if flip is None else check_coins(flip, "flip", n)
    dtype = jnp.promote_types(images.dtype, jnp.float32)
    top, left, box_height, box_width = jnp.asarray(boxes, dtype).T
    rows = _weights(top, box_height, height, size[0], cut=True)
    columns = _weights(left, box_width, width, size[1], cut=True)
    if flip is not None:
        columns = jnp.where(flip[:, None, None], columns[:, ::-1], columns)
    return mix(images.astype(dtype), rows, columns).astype(images.dtype)


def crop(
    images: Float[Array | np.ndarray, "n h w c"],
    alpha: Float[Array | np.ndarray, "n 4"],
    size: tuple[int, int],
) -> Float[Array, "n height width c"]:
    """Resamples a part of each image; smooth in its place, area and shape almost everywhere.

    A box of sqrt(area/aspect) by sqrt(area·aspect) of the image, no side longer than the image's,
    is read with the weights of Pillow's `resize(size, BILINEAR, box)`. (·, ·, 0, 0) is the whole
    image. Next to the box's edge pixels outside it count too, as in Pillow: if they were cut off,
    the result would jump where the box crosses from one pixel to the next.

    Args:
      images: `[n, h, w, c]`.
      alpha: one row for each image, `[n, 4]`:
        crop_down, crop_right: place of the box's centre in the room that it has, -1 for the upper
        or left end of the image, 0 for the middle, 1 for the lower or right end;
        crop_log_area: natural logarithm of the share of the image's area;
        crop_log_aspect: natural logarithm of width/height in pixels, over that of the image.
      size: height and width of the result.

    Returns:
      `[n, height, width, c]` in the wider of the dtypes of images and alpha.
    """
    images = check_images(images)
    alpha = check_alpha(alpha, len(images), NAMES)
    dtype = jnp.promote_types(jnp.result_type(images, alpha), jnp.float32)
    down, right, log_area, log_aspect = alpha.astype(dtype).T

    def weights(place, log_share, num_in, num_out):
        length = num_in * jnp.exp(jnp.minimum(log_share, 0))
        return _weights((1 + place) / 2 * (num_in - length), length, num_in, num_out, cut=False)

    height, width = images.shape[1:3]
    rows = weights(down, (log_area - log_aspect) / 2, height, size[0])
    columns = weights(right, (log_area + log_aspect) / 2, width, size[1])
    return mix(images.astype(dtype), rows, columns)


def mix(
    images: Float[Array, "n h w c"],
    rows: Float[Array, "n height h"],
    columns: Float[Array, "n width w"],
) -> Float[Array, "n height width c"]:
    """Linear combinations of rows, then of columns, of each image."""
    # Highest precision: elsewhere than on CPU the default would round pixels to three digits.
    exact = jax.lax.Precision.HIGHEST
    squeezed = jnp.einsum("nyh,nhwc->nywc", rows, images, precision=exact)
    return jnp.einsum("nxw,nywc->nyxc", columns, squeezed, precision=exact)


def _weights(
    start: Float[Array, " n"],
    length: Float[Array, " n"],
    num_in: int,
    num_out: int,
    *,
    cut: bool,
) -> Float[Array, "n out in"]:
    """What each of `num_in` pixels gives to each of `num_out` samples of [start, start+length].

    `cut` leaves out pixels that are not in this range.
    """
    start, length = start[:, None, None], length[:, None, None]
    step = length / num_out
    centres = start + (jnp.arange(num_out, dtype=step.dtype)[None, :, None] + 0.5) * step
    pixels = jnp.arange(num_in, dtype=step.dtype)[None, None]
    distance = jnp.abs(pixels + 0.5 - centres) / jnp.maximum(step, 1)
    weights = jnp.maximum(1 - distance, 0)
    if cut:
        weights = jnp.where((pixels + 1 > start) & (pixels < start + length), weights, 0)
    return weights / weights.sum(axis=-1, keepdims=True)


def resize(
    images: Float[Array | np.ndarray, "n h w c"], size: tuple[int, int]
) -> Float[Array, "n height width c"]:
    """Resamples whole images as `crop_and_resize` does; images of that size come back as they are.

    Args:
      images: `[n, h, w, c]`.
      size: height and width of the result.

    Returns:
      `[n, height, width, c]` in the dtype of `images`.
    """
    images = check_images(images)
    n, height, width, _ = images.shape
    if (height, width) == tuple(size):
        return images
    whole = np.tile([0, 0, height, width], (n, 1))
    return crop_and_resize(images, whole, None, size)


def horizontal_flip(
    images: Float[Array | np.ndarray, "n h w c"], flip: Bool[Array | np.ndarray, " n"]
) -> Float[Array, "n h w c"]:
    """Mirrors left and right where `flip` (`[n]`) is true."""
    images = check_images(images)
    flip = check_coins(flip, "flip", len(images))
    return jnp.where(flip[:, None, None, None], images[:, :, ::-1], images)
