"""Random resized crop and flip on the device, with static shapes.

A crop is resampled by two small matrix products an image, rows then columns. Their weights are
those of Pillow's antialiased bilinear filter, which torchvision's RandomResizedCrop uses; a flip
reverses the columns' weights and costs nothing. `sample_crops` draws, `crop_boxes` turns the draws
into boxes once the size of the images is known, `crop_and_resize` applies them.

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

from invclr_jax.transforms.colour import check_images

ATTEMPTS = 10
SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)


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


def sample_crops(key: PRNGKeyArray, n: int, *, scale: Sequence[float] = SCALE) -> Crops:
    """Draws `n` crops: area uniform in `scale`, aspect log-uniform in `RATIO`, position uniform.

    Several attempts are drawn for each because some (area, aspect) pairs stick out of the image;
    `crop_boxes` takes the first that fits. Drawing all of them at once keeps shapes static.
    """
    draws = jax.random.uniform(key, (n, 2 * ATTEMPTS + 2))
    area, log_aspect, position = jnp.split(draws, [ATTEMPTS, 2 * ATTEMPTS], axis=1)
    low, high = np.log(RATIO).tolist()
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
    images: Float[Array | np.ndarray, "n h w 3"],
    boxes: Num[Array | np.ndarray, "n 4"],
    flip: Bool[Array | np.ndarray, " n"] | None,
    size: tuple[int, int],
) -> Float[Array, "n height width 3"]:
    """Cuts a box out of each image, resamples it to one size and mirrors it where asked.

    The filter is a triangle as wide as the coarser of the two grids, so that shrinking averages
    over all pixels. Only pixels of the box count, as if it had been cut out first. The box of the
    whole image with unchanged size is the identity.

    Args:
      images: `[n, h, w, 3]`.
      boxes: (top, left, height, width) in pixels, `[n, 4]`; fractions are allowed.
      flip: whether to mirror left and right, `[n]`; None mirrors nothing.
      size: height and width of the result.

    Returns:
      `[n, height, width, 3]` in the dtype of `images`.
    """
    images = check_images(images)
    n, height, width, _ = images.shape
    if np.shape(boxes) != (n, 4):
        raise ValueError(
            f"boxes have shape {np.shape(boxes)}, not {(n, 4)}: give (top, left, height, width) "
            f"for each of the {n} images"
        )
    flip = None if flip is None else _check_flip(flip, n)
    dtype = jnp.promote_types(images.dtype, jnp.float32)
    top, left, box_height, box_width = jnp.asarray(boxes, dtype).T
    rows = _weights(top, box_height, height, size[0])
    columns = _weights(left, box_width, width, size[1])
    if flip is not None:
        columns = jnp.where(flip[:, None, None], columns[:, ::-1], columns)
    # Highest precision: elsewhere than on CPU the default would round pixels to three digits.
    exact = jax.lax.Precision.HIGHEST
    squeezed = jnp.einsum("nyh,nhwc->nywc", rows, images.astype(dtype), precision=exact)
    resized = jnp.einsum("nxw,nywc->nyxc", columns, squeezed, precision=exact)
    return resized.astype(images.dtype)


def _weights(
    start: Float[Array, " n"], length: Float[Array, " n"], num_in: int, num_out: int
) -> Float[Array, "n out in"]:
    """What each of `num_in` pixels gives to each of `num_out` samples of [start, start+length]."""
    start, length = start[:, None, None], length[:, None, None]
    step = length / num_out
    centres = start + (jnp.arange(num_out, dtype=step.dtype)[None, :, None] + 0.5) * step
    pixels = jnp.arange(num_in, dtype=step.dtype)[None, None]
    distance = jnp.abs(pixels + 0.5 - centres) / jnp.maximum(step, 1)
    inside = (pixels + 1 > start) & (pixels < start + length)
    weights = jnp.where(inside, jnp.maximum(1 - distance, 0), 0)
    return weights / weights.sum(axis=-1, keepdims=True)


def resize(
    images: Float[Array | np.ndarray, "n h w 3"], size: tuple[int, int]
) -> Float[Array, "n height width 3"]:
    """Resamples whole images as `crop_and_resize` does; images of that size come back as they are.

    Args:
      images: `[n, h, w, 3]`.
      size: height and width of the result.

    Returns:
      `[n, height, width, 3]` in the dtype of `images`.
    """
    images = check_images(images)
    n, height, width, _ = images.shape
    if (height, width) == tuple(size):
        return images
    whole = np.tile([0, 0, height, width], (n, 1))
    return crop_and_resize(images, whole, None, size)


def horizontal_flip(
    images: Float[Array | np.ndarray, "n h w 3"], flip: Bool[Array | np.ndarray, " n"]
) -> Float[Array, "n h w 3"]:
    """Mirrors left and right where `flip` (`[n]`) is true."""
    images = check_images(images)
    flip = _check_flip(flip, len(images))
    return jnp.where(flip[:, None, None, None], images[:, :, ::-1], images)


def _check_flip(flip: Array | np.ndarray, n: int) -> Bool[Array, " n"]:
    if np.shape(flip) != (n,):
        raise ValueError(f"flip has shape {np.shape(flip)}, not {(n,)}: give one coin an image")
    return jnp.asarray(flip, bool)
