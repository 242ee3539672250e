"""Calls of the C++ convolutions of `invclr_jax/native`.

There are two families, each with the convolution and its two gradients: `winograd` (3×3 kernels,
stride 1, channels in multiples of 16) and `direct` (any). Both take float32 and bfloat16.
"""

import functools
import logging

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.native.library import library, target

__all__ = ["CHANNELS", "FAMILIES", "ROLES", "call", "library"]

CHANNELS = 16
"""Input and output channels come in multiples of so many for `winograd`."""

FAMILIES = ("winograd", "direct")
ROLES = ("convolve", "input_gradient", "kernel_gradient")


def call(
    family: str,
    role: str,
    a: Float[Array, "..."],
    b: Float[Array, "..."],
    shape: tuple[int, ...],
    stride: int = 1,
) -> Float[Array, "..."]:
    """Calls the library; `forms.native` tells what suits.

    Args:
      family: `winograd` or `direct`.
      role: one of `ROLES`; `primitives` has functions of these names.
      a: the first operand, float32 or bfloat16.
      b: the second, of the same type.
      shape: of the result.
      stride: step between outputs; 1 for `winograd`.

    Returns:
      The result in the operands' type. Libraries without bfloat16 compute in float32.
    """
    level, dtype = library(), a.dtype
    if dtype == jnp.bfloat16 and level != "avx512_bf16":
        _say_once(f"no bfloat16 arithmetic on this CPU ({level}): convolving in float32")
        a, b = a.astype(jnp.float32), b.astype(jnp.float32)
    options = {"stride": np.int64(stride)} if family == "direct" else {}
    result = jax.ShapeDtypeStruct(shape, a.dtype)
    function = target(f"{family}_{role}", level)
    return jax.ffi.ffi_call(function, result)(a, b, **options).astype(dtype)


@functools.cache
def _say_once(sentence: str) -> None:
    logging.getLogger(__name__).warning(sentence)
