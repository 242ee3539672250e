"""Brightness, contrast, elastic deformation, pixelation and JPEG compression."""

import io

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray
from PIL import Image

from invclr_jax.transforms.corruptions.reflection import combine, mirrored, smooth
from invclr_jax.transforms.interpolation import interpolate


def brightness(
    images: Float[Array, "n h w 3"], keys: Key[Array, " n"], amount: float
) -> Float[Array, "n h w 3"]:
    """Adds to the value of hue, saturation and value, the largest of a pixel's three colours."""
    value = images.max(axis=-1, keepdims=True)
    brighter = jnp.minimum(value + amount, 1)
    black = value <= 0
    return jnp.where(black, brighter, images * (brighter / jnp.where(black, 1, value)))


def contrast(
    images: Float[Array, "n h w 3"], keys: Key[Array, " n"], factor: float
) -> Float[Array, "n h w 3"]:
    """Moves each channel towards its mean."""
    mean = images.mean(axis=(1, 2), keepdims=True)
    return (images - mean) * factor + mean


def elastic(
    images: Float[Array, "n h w 3"], keys: Key[Array, " n"], strength: tuple[float, float, float]
) -> Float[Array, "n h w 3"]:
    """A random affine map, then random smooth displacements."""
    size = min(images.shape[1:3])
    amount, deviation, corners = (size * share for share in strength)
    parts = jax.vmap(lambda key: jax.random.split(key, 3))(keys)
    height, width = images.shape[1:3]
    sources = jax.vmap(lambda key: _affine_sources(key, height, width, corners))
    rows, columns = sources(parts[:, 0])
    images = interpolate(
        images, mirrored(rows, height, edge=0.0), mirrored(columns, width, edge=0.0)
    )

    def displacement(keys):
        draw = jax.vmap(lambda key: jax.random.uniform(key, (height, width, 1), minval=-1.0))
        return amount * smooth(draw(keys), deviation)[..., 0]

    down, right = displacement(parts[:, 1]), displacement(parts[:, 2])
    rows = jnp.arange(height)[None, :, None] + down
    columns = jnp.arange(width)[None, None] + right
    return interpolate(images, mirrored(rows, height, edge=0.5), mirrored(columns, width, edge=0.5))


def _affine_sources(
    key: PRNGKeyArray, height: int, width: int, amount: float
) -> tuple[Float[Array, "h w"], Float[Array, "h w"]]:
    """Where pixels come from if three corners of a square are displaced."""
    centre, side = np.array([height // 2, width // 2], float), min(height, width) // 3
    before = centre + side * np.array([[1, 1], [1, -1], [-1, -1]])
    after = before + jax.random.uniform(key, (3, 2), minval=-amount, maxval=amount)
    # Rows of `inverse` send (row, column, 1) of the result to a row and a column of the picture.
    inverse = jnp.linalg.solve(jnp.concatenate([after, jnp.ones((3, 1))], axis=1), before).T
    rows, columns = jnp.arange(height)[:, None], jnp.arange(width)[None]
    row, column = (line[0] * rows + line[1] * columns + line[2] for line in inverse)
    return row, column


def pixelate(
    images: Float[Array, "n h w 3"], keys: Key[Array, " n"], share: float
) -> Float[Array, "n h w 3"]:
    """Shrinks by averaging and enlarges by repeating, in 8 bits, as Pillow's BOX filter."""
    height, width = images.shape[1:3]
    small = int(height * share), int(width * share)
    # Pillow resizes rows first, and rounds after each pass.
    for axis, lengths in ((2, (width, small[1])), (1, (height, small[0]))):
        images = _rounded(combine(images, _box_weights(*lengths), axis=axis))
    for axis, lengths in ((2, (small[1], width)), (1, (small[0], height))):
        images = _rounded(combine(images, _box_weights(*lengths), axis=axis))
    return images


def _box_weights(num_in: int, num_out: int) -> np.ndarray:
    """What each pixel gives to each larger or smaller one, `[num_out, num_in]`."""
    step = num_in / num_out
    centres = (np.arange(num_out) + 0.5) * step
    distance = (np.arange(num_in)[None] + 0.5 - centres[:, None]) / max(step, 1)
    weights = ((distance > -0.5) & (distance <= 0.5)).astype(float)
    return weights / weights.sum(axis=1, keepdims=True)


def _rounded(images: Array) -> Array:
    return jnp.floor(255 * images + 0.5) / 255


def jpeg(
    images: Float[np.ndarray, "n h w 3"], seeds: np.ndarray, quality: int
) -> Float[np.ndarray, "n h w 3"]:
    """Writes and reads JPEG files in memory, on the host."""
    return np.stack([_through_jpeg(image, quality) for image in images]) / np.float32(255)


def _through_jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(np.rint(255 * image).astype(np.uint8)).save(file, "JPEG", quality=quality)
    with Image.open(file) as read:
        return np.asarray(read)
