"""3×3 convolutions on CPUs by Winograd's products: calls of the C++ in `invclr_jax/native`."""

import ctypes
import functools
import importlib.util
import pathlib

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from invclr_jax import native
from invclr_jax.models.dtypes import Shaped

CHANNELS = 16
"""Input and output channels come in multiples of so many, the widest vectors of a processor."""

_AVX2 = {"avx", "avx2", "fma", "bmi1", "bmi2", "f16c", "abm", "movbe"}
LEVELS = {
    "avx512": _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "avx2": _AVX2,
}
"""The libraries, best first, and what a processor must be able to do for each: all that setup.py
allows the compiler to use."""

FUNCTIONS = ("convolve", "kernel_gradient")


def suits(x: Shaped, kernel: Shaped) -> bool:
    """Whether `convolve` takes images and a kernel of these shapes and types."""
    return (
        kernel.shape[:2] == (3, 3)
        and kernel.shape[2] % CHANNELS == kernel.shape[3] % CHANNELS == 0
        and x.dtype == kernel.dtype == jnp.float32
    )


def convolve(
    x: Float[Array, "n h v c"], kernel: Float[Array, "3 3 c f"]
) -> Float[Array, "n h v f"]:
    """Convolves with stride 1, one zero padded on each side; see `suits`."""
    return _call("convolve", (*x.shape[:3], kernel.shape[3]), x, kernel)


def kernel_gradient(
    x: Float[Array, "n h v c"], y: Float[Array, "n h v f"]
) -> Float[Array, "3 3 c f"]:
    """The gradient of ⟨convolve(x, w), y⟩ in w."""
    return _call("kernel_gradient", (3, 3, x.shape[3], y.shape[3]), x, y)


def _call(name: str, shape: tuple[int, ...], a: Array, b: Array) -> Array:
    result = jax.ShapeDtypeStruct(shape, a.dtype)
    return jax.ffi.ffi_call(_target(name, library()), result)(a, b)


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
    spec = importlib.util.find_spec(f"{native.__name__}.winograd_{level}")
    if spec is None or spec.origin is None:
        return False
    try:
        functions = ctypes.CDLL(spec.origin)
    except OSError:  # made on another system
        return False
    for name in FUNCTIONS:
        capsule = jax.ffi.pycapsule(getattr(functions, f"invclr_{name}"))
        jax.ffi.register_ffi_target(_target(name, level), capsule, platform="cpu")
    return True


def _target(name: str, level: str | None) -> str:
    return f"invclr_{name}_{level}"
