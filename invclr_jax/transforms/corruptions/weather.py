"""Weather: snow, frost and fog."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from invclr_jax.transforms.colour import greyscale
from invclr_jax.transforms.corruptions.blurs import magnified, smear
from invclr_jax.transforms.pictures import clip, spread

_ICE = np.array([0.85, 0.95, 1.0], np.float32)  # red, green and blue of frost


def snow(
    images: Float[Array, "n h w 3"], keys: Key[Array, " n"], strength: tuple[float, ...]
) -> Float[Array, "n h w 3"]:
    """Whitens the picture and lays flakes over it, smeared as they fall."""
    mean, deviation, zoom, threshold, radius, motion, share = strength
    flake_keys, angle_keys = _split(keys)
    shape = (*images.shape[1:3], 1)
    flakes = mean + deviation * jax.vmap(lambda key: jax.random.normal(key, shape))(flake_keys)
    flakes = magnified(flakes, zoom)
    flakes = _eight_bit(jnp.where(flakes < threshold, 0, clip(flakes)), rounded=False)
    degrees = jax.vmap(lambda key: jax.random.uniform(key, minval=-135.0, maxval=-45.0))(angle_keys)
    flakes = _eight_bit(smear(flakes, degrees, int(radius), motion), rounded=True)
    whitened = jnp.maximum(images, 1.5 * greyscale(images) + 0.5)
    return share * images + (1 - share) * whitened + flakes + jnp.rot90(flakes, 2, (1, 2))


def frost(
    images: Float[Array, "n h w 3"], keys: Key[Array, " n"], strength: tuple[float, float]
) -> Float[Array, "n h w 3"]:
    """Adds ice: bright ridges of a fractal, in place of the published photographs of frost."""
    share, amount = strength
    heights = fractal(keys, max(images.shape[1:3]), decay=2.0)
    heights = heights[:, : images.shape[1], : images.shape[2], None]
    ridges = 1 - 2 * jnp.abs(heights - 0.5)
    return share * images + amount * ridges**2 * _ICE[None, None, None]


def fog(
    images: Float[Array, "n h w 3"], keys: Key[Array, " n"], strength: tuple[float, float]
) -> Float[Array, "n h w 3"]:
    """Adds a fractal and scales the result back to the brightness that the picture had."""
    thickness, decay = strength
    heights = fractal(keys, max(images.shape[1:3]), decay=decay)
    heights = heights[:, : images.shape[1], : images.shape[2], None]
    brightest = spread(images.max(axis=(1, 2, 3)))
    return (images + thickness * heights) * brightest / (brightest + thickness)


def fractal(keys: Key[Array, " n"], least: int, *, decay: float) -> Float[Array, "n size size"]:
    """Landscapes of heights in [0, 1] by the diamond-square algorithm, on a torus.

    Args:
      keys: one for each landscape, `[n]`.
      least: side; the next power of two is taken.
      decay: roughness falls by this factor from one scale to the next.
    """
    size = 1 << max(least - 1, 1).bit_length()
    return jax.vmap(lambda key: _landscape(key, size, decay))(keys)


def _landscape(key: PRNGKeyArray, size: int, decay: float) -> Float[Array, "size size"]:
    # One draw for all points but the first: a compiler takes long over many small ones.
    draws = jax.random.uniform(key, (size**2 - 1,), minval=-1.0)
    corners, rough = jnp.zeros((1, 1)), 100.0

    def jitter(total, index):
        start = (1 + index) * total.size - 1
        drawn = draws[start : start + total.size].reshape(total.shape)
        # The published code multiplies by the roughness twice.
        return total / 4 + rough**2 * drawn

    for _ in range(int(np.log2(size))):
        total = corners + jnp.roll(corners, -1, 0)
        centres = jitter(total + jnp.roll(total, -1, 1), 0)
        above = centres + jnp.roll(centres, 1, 0) + corners + jnp.roll(corners, -1, 1)
        beside = centres + jnp.roll(centres, 1, 1) + corners + jnp.roll(corners, -1, 0)
        even = _alternate(corners, jitter(above, 1), 1)
        odd = _alternate(jitter(beside, 2), centres, 1)
        corners, rough = _alternate(even, odd, 0), rough / decay
    lowest, highest = corners.min(), corners.max()
    return (corners - lowest) / (highest - lowest)


def _alternate(first: Array, second: Array, axis: int) -> Array:
    """Rows or columns of two grids in turn: far faster on CPUs than writing to every second."""
    grid = jnp.stack([first, second], axis=axis + 1)
    shape = [2 * n if i == axis else n for i, n in enumerate(first.shape)]
    return grid.reshape(shape)


def _eight_bit(values: Array, *, rounded: bool) -> Array:
    return jnp.floor(255 * values + (0.5 if rounded else 1e-3)) / 255


def _split(keys: Key[Array, " n"]) -> tuple[Key[Array, " n"], Key[Array, " n"]]:
    pairs = jax.vmap(jax.random.split)(keys)
    return pairs[:, 0], pairs[:, 1]
