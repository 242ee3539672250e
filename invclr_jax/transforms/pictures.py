"""What every transform of pictures asks of its arguments."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt8

Images = UInt8[Array | np.ndarray, "n h w c"] | Float[Array | np.ndarray, "n h w c"]


def check_images(images: Array | np.ndarray) -> Float[Array, "n h w c"]:
    """The images as a JAX array, or a ValueError if they are not a batch of float images."""
    if np.ndim(images) != 4:
        raise ValueError(
            f"images have shape {np.shape(images)}, not [n, height, width, channels]: give a batch "
            "of images with channels last (one image is images[None])"
        )
    images = jnp.asarray(images)
    if not jnp.issubdtype(images.dtype, jnp.floating):
        raise ValueError(
            f"images have dtype {images.dtype}, not floats in [0, 1]: divide 8-bit images by 255"
        )
    return images


def as_floats(x: Array | np.ndarray) -> Float[Array, "n h w c"]:
    """8-bit images divided by 255, or floats as they are."""
    x = jnp.asarray(x)
    return check_images(x / 255 if x.dtype == jnp.uint8 else x)


def check_alpha(alpha: Array | np.ndarray, n: int, names: Sequence[str]) -> Float[Array, "n a"]:
    """The parameters as a JAX array, or a ValueError if they do not fit n images."""
    if np.shape(alpha) != (n, len(names)):
        raise ValueError(
            f"alpha has shape {np.shape(alpha)}, not {(n, len(names))}: give ({', '.join(names)}) "
            f"for each of the {n} images"
        )
    return jnp.asarray(alpha)


def check_parameter(parameter: Array | np.ndarray, name: str, n: int) -> Float[Array, " n"]:
    """One number for each image as a JAX array, or a ValueError."""
    if np.shape(parameter) != (n,):
        raise ValueError(
            f"{name} has shape {np.shape(parameter)}, not {(n,)}: give one number for each image"
        )
    return jnp.asarray(parameter)


def check_coins(coins: Array | np.ndarray, name: str, n: int) -> Bool[Array, " n"]:
    """One coin for each image as a JAX array, or a ValueError."""
    if np.shape(coins) != (n,):
        raise ValueError(
            f"{name} has shape {np.shape(coins)}, not {(n,)}: give one coin for each image"
        )
    return jnp.asarray(coins, bool)


def spread(parameter: Array) -> Array:
    """`[n]` as `[n, 1, 1, 1]`, to act on pictures."""
    return parameter[:, None, None, None]


def clip(images: Array) -> Array:
    """Clips to [0, 1]; the derivative exactly at the ends is 0."""
    # The derivative of a clamp is one selection. That of `jnp.clip` costs up to three times as much
    # for the sake of one half exactly at 0 and 1, which alpha's gradient does not depend on.
    return jax.lax.clamp(jnp.zeros((), images.dtype), images, jnp.ones((), images.dtype))
