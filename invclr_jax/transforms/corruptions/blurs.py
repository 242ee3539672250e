"""Blurs: defocus, frosted glass, motion and zoom."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from invclr_jax.transforms.corruptions.reflection import combine
from invclr_jax.transforms.filters import gaussian_blur


def defocus(
    images: Float[Array, "n h w c"], keys: Key[Array, " n"], strength: tuple[float, float]
) -> Float[Array, "n h w c"]:
    """Convolves with an antialiased disk; pictures are mirrored about their edge pixels."""
    kernel = disk(*strength)
    margin = len(kernel) // 2
    edges = ((0, 0), (margin, margin), (margin, margin), (0, 0))
    wide = jnp.pad(images, edges, mode="reflect")
    height, width = images.shape[1:3]
    return sum(
        kernel[down, right] * wide[:, down : down + height, right : right + width]
        for down, right in itertools.product(range(len(kernel)), repeat=2)
        if kernel[down, right] > 0
    )


def disk(radius: float, deviation: float) -> np.ndarray:
    """A disk of ones with sum 1, smoothed by three Gaussian weights along each axis."""
    reach = int(radius) + 1
    squares = np.arange(-reach, reach + 1) ** 2
    inside = (squares[:, None] + squares[None] <= radius**2).astype(float)
    taps = np.exp(-(np.arange(-1, 2) ** 2) / (2 * deviation**2))
    taps /= taps.sum()
    for axis in (0, 1):
        inside = np.apply_along_axis(np.convolve, axis, inside, taps, mode="same")
    return inside / inside.sum()


def glass(
    images: Float[Array, "n h w c"], keys: Key[Array, " n"], strength: tuple[float, int]
) -> Float[Array, "n h w c"]:
    """Blurs, replaces pixels by a neighbour up, left or both by chance, and blurs again.

    The published code means to swap pixels, but assigns through views: both become the neighbour.
    As it goes from the last pixel to the first, each is replaced by a value that is still old.
    """
    deviation, times = strength
    widths = jnp.full(len(images), deviation, images.dtype)
    images = jnp.floor(255 * gaussian_blur(images, widths) + 1e-3) / 255
    for key in jnp.moveaxis(jax.vmap(lambda key: jax.random.split(key, times))(keys), 1, 0):
        images = jax.vmap(_jostle)(images, key)
    return gaussian_blur(images, widths)


def _jostle(image: Float[Array, "h w c"], key: PRNGKeyArray) -> Float[Array, "h w c"]:
    height, width = image.shape[:2]
    rows, columns = jnp.meshgrid(jnp.arange(height), jnp.arange(width), indexing="ij")
    steps = jax.random.bernoulli(key, 0.5, (2, height, width)).astype(int)
    moves = (rows > 1) & (columns > 1)
    return image[rows - jnp.where(moves, steps[0], 0), columns - jnp.where(moves, steps[1], 0)]


def motion(
    images: Float[Array, "n h w c"], keys: Key[Array, " n"], strength: tuple[int, float]
) -> Float[Array, "n h w c"]:
    """Smears each picture in a direction of its own, between -45 and 45 degrees."""
    degrees = jax.vmap(lambda key: jax.random.uniform(key, minval=-45.0, maxval=45.0))(keys)
    return smear(images, degrees, *strength)


def smear(
    images: Float[Array, "n h w c"], degrees: Float[Array, " n"], radius: int, deviation: float
) -> Float[Array, "n h w c"]:
    """ImageMagick's motion blur: half a Gaussian along a line of pixels; edges are repeated."""
    length = 2 * radius + 1
    weights = np.exp(-(np.arange(length) ** 2) / (2 * deviation**2))
    weights /= weights.sum()
    steps = jnp.arange(length)[None]
    angle = jnp.deg2rad(degrees)[:, None]
    right, down = (
        jnp.ceil(steps * part - 0.5).astype(int) for part in (jnp.cos(angle), jnp.sin(angle))
    )
    edges = ((0, 0), (length, length), (length, length), (0, 0))
    wide = jnp.pad(images, edges, mode="edge")

    def shifted(image, down, right):
        start = (length + down, length + right, 0)
        return jax.lax.dynamic_slice(image, start, images.shape[1:])

    return sum(weights[i] * jax.vmap(shifted)(wide, down[:, i], right[:, i]) for i in range(length))


def zoom(
    images: Float[Array, "n h w c"], keys: Key[Array, " n"], largest: float
) -> Float[Array, "n h w c"]:
    """The mean of the picture and of its centre at several magnifications."""
    total = images
    factors = np.arange(1, largest, 0.01)
    for factor in factors:
        total = total + magnified(images, float(factor))
    return total / (len(factors) + 1)


def magnified(images: Float[Array, "n h w c"], factor: float) -> Float[Array, "n h w c"]:
    """The centre of each picture, linearly interpolated as by `scipy.ndimage.zoom`."""
    rows, columns = (_magnifier(length, factor) for length in images.shape[1:3])
    return combine(combine(images, rows, axis=1), columns, axis=2)


def _magnifier(length: int, factor: float) -> np.ndarray:
    """Weights `[length, length]`: a part is enlarged, and what is too much cut off evenly."""
    part = int(np.ceil(length / factor))
    start, large = (length - part) // 2, round(part * factor)
    positions = np.linspace(0, part - 1, large)[(large - length) // 2 :][:length]
    distance = np.abs(positions[:, None] - (np.arange(length) - start)[None])
    return np.maximum(1 - distance, 0)
