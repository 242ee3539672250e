"""Any function from images to features, as a Flax module without parameters."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Function(nn.Module):
    """A function `images [n, h, w, c] -> features [n, d]`, in JAX or in plain Python.

    A function that JAX can trace becomes part of compiled programs. Any other, such as one that
    calls PyTorch, is given NumPy arrays while they run. It must not call JAX then: make such a
    function traceable instead.

    Attributes:
      function: the function.
    """

    function: Callable[[Any], Any]

    def __call__(self, images: Float[Array, "n h w c"]) -> Float[Array, "n d"]:
        """The features; a ValueError where the function does not give any."""
        if is_traceable(self.function, images):
            z = self.function(images)
            check_shape(np.shape(z), images.shape[0])
            return jnp.asarray(z)
        example = on_host(self.function, np.zeros(images.shape, images.dtype))
        result = jax.ShapeDtypeStruct(example.shape, images.dtype)

        def call(batch: Any) -> np.ndarray:
            return on_host(self.function, np.asarray(batch)).astype(result.dtype)

        return jax.pure_callback(call, result, images)


def is_traceable(function: Callable[[Any], Any], images: Array | np.ndarray) -> bool:
    """Whether JAX can trace a function, and so differentiate and compile it.

    Args:
      function: images -> features.
      images: an example, of which only shape and type matter.
    """
    shape = jax.ShapeDtypeStruct(images.shape, images.dtype)
    try:
        jax.eval_shape(function, shape)
    except Exception:  # NumPy, PyTorch and others refuse a tracer each in its own way
        return False
    return True


def on_host(function: Callable[[Any], Any], images: np.ndarray) -> np.ndarray:
    """What a function makes of NumPy images, or a ValueError that says what is wrong with it."""
    try:
        z = np.asarray(function(images))
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise ValueError(
            f"encode failed on images of shape {images.shape} ({type(error).__name__}: {reason}): "
            "it must take float32 images [n, h, w, channels] for any n"
        ) from error
    check_shape(z.shape, len(images))
    if z.dtype.kind not in "fiu":
        raise ValueError(f"encode returned an array of {z.dtype}: it must return numbers")
    return z


def check_shape(shape: tuple[int, ...], rows: int) -> None:
    """Raises ValueError unless features are `[n, d]` with a row for each image."""
    if len(shape) != 2 or shape[1] == 0:
        raise ValueError(
            f"encode returned shape {shape} for {rows} images: it must return features [n, d], one "
            "row for each image"
        )
    if shape[0] != rows:
        raise ValueError(
            f"encode returned {shape[0]} rows for {rows} images: it must take any number of images "
            "and return one row for each"
        )
