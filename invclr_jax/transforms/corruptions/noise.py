"""Noise: normal, Poisson, salt and pepper."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, UInt32


def gaussian(
    images: Float[Array, "n h w c"], keys: Key[Array, " n"], scale: float
) -> Float[Array, "n h w c"]:
    """Adds normal noise of standard deviation `scale`."""
    return images + scale * jax.vmap(lambda key: jax.random.normal(key, images.shape[1:]))(keys)


def shot(
    images: Float[np.ndarray, "n h w c"], seeds: UInt32[np.ndarray, "n 2"], photons: float
) -> Float[np.ndarray, "n h w c"]:
    """Counts photons: Poisson with mean x·photons, over photons.

    On the host: NumPy draws Poisson numbers twenty times as fast as XLA does on a CPU.
    """
    draws = [
        np.random.default_rng(seed.tolist()).poisson(image.astype(np.float64) * photons)
        for image, seed in zip(images, seeds, strict=True)
    ]
    return (np.stack(draws) / photons).astype(images.dtype)


def impulse(
    images: Float[Array, "n h w c"], keys: Key[Array, " n"], amount: float
) -> Float[Array, "n h w c"]:
    """Replaces a share of all values, each channel by itself, by 0 or 1."""
    draws = jax.vmap(lambda key: jax.random.uniform(key, images.shape[1:]))(keys)
    return jnp.where(draws < amount, jnp.where(draws < amount / 2, 1.0, 0.0), images)
