"""The C++ convolutions of `invclr_jax/native`: which library this processor can use, and its calls.

There are two families, each with the convolution and its two gradients: `winograd` (3×3 kernels,
stride 1, channels in multiples of 16) and `direct` (any). Both take float32 and bfloat16.
"""

import ctypes
import functools
import importlib.util
import itertools
import logging
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax import native

CHANNELS = 16
"""Input and output channels come in multiples of so many for `winograd`."""

_AVX2 = {"avx", "avx2", "fma", "bmi1", "bmi2", "f16c", "abm", "movbe"}
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS = {"avx512_bf16": _AVX512 | {"avx512_bf16"}, "avx512": _AVX512, "avx2": _AVX2}
"""The libraries, best first, and what a processor must be able to do for each: all that setup.py
allows the compiler to use."""

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
    target = _target(f"{family}_{role}", level)
    return jax.ffi.ffi_call(target, result)(a, b, **options).astype(dtype)


@functools.cache
def library() -> str | None:
    """The name of the library that this processor can use, registered with XLA.

    Returns:
      None where there is none: not compiled, or another kind of processor.
    """
    able = _processor()
    levels = (level for level, needed in LEVELS.items() if needed <= able)
    return next(filter(_register, levels), None)


def _processor() -> set[str]:
    """What the processor can do, in Linux' words."""
    path = pathlib.Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((set(line.split()) for line in lines if line.startswith("flags")), set())


@functools.cache
def _register(level: str) -> bool:
    """Makes a library known to XLA; False where it was not compiled or cannot be loaded."""
    spec = importlib.util.find_spec(f"{native.__name__}.convolutions_{level}")
    if spec is None or spec.origin is None:
        return False
    try:
        functions = ctypes.CDLL(spec.origin)
    except OSError:  # made on another system
        return False
    for name in map("_".join, itertools.product(FAMILIES, ROLES)):
        capsule = jax.ffi.pycapsule(getattr(functions, f"invclr_{name}"))
        jax.ffi.register_ffi_target(_target(name, level), capsule, platform="cpu")
    return True


def _target(name: str, level: str | None) -> str:
    return f"invclr_{name}_{level}"


@functools.cache
def _say_once(sentence: str) -> None:
    logging.getLogger(__name__).warning(sentence)
