"""Which of the compiled libraries this processor can use, and what XLA calls their functions."""

import ctypes
import functools
import importlib.util
import pathlib

import jax

from invclr_jax import native

_AVX2 = {"avx", "avx2", "fma", "bmi1", "bmi2", "f16c", "abm", "movbe"}
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS = {"avx512_bf16": _AVX512 | {"avx512_bf16"}, "avx512": _AVX512, "avx2": _AVX2}
"""The libraries, best first, and what a processor must be able to do for each: all that setup.py
allows the compiler to use."""

FUNCTIONS = (
    "winograd_convolve",
    "winograd_input_gradient",
    "winograd_kernel_gradient",
    "direct_convolve",
    "direct_input_gradient",
    "direct_kernel_gradient",
    "interpolate",
    "image_gradient",
    "weight_gradients",
    "pixel_sums",
    "pixel_products",
    "pixel_squares",
)
"""What each library has."""


@functools.cache
def library() -> str | None:
    """The name of the library that this processor can use, registered with XLA.

    Returns:
      None where there is none: not compiled, or another kind of processor.
    """
    able = processor()
    levels = (level for level, needed in LEVELS.items() if needed <= able)
    return next(filter(_register, levels), None)


def target(function: str, level: str | None) -> str:
    """The name by which XLA knows a function of a library."""
    return f"invclr_{function}_{level}"


def processor() -> set[str]:
    """What the processor can do, in Linux' words."""
    path = pathlib.Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((set(line.split()) for line in lines if line.startswith("flags")), set())


@functools.cache
def _register(level: str) -> bool:
    """Makes a library known to XLA; False where it was not compiled or cannot be loaded."""
    spec = importlib.util.find_spec(f"{native.__name__}.kernels_{level}")
    if spec is None or spec.origin is None:
        return False
    try:
        functions = ctypes.CDLL(spec.origin)
    except OSError:  # made on another system
        return False
    for name in FUNCTIONS:
        capsule = jax.ffi.pycapsule(getattr(functions, f"invclr_{name}"))
        jax.ffi.register_ffi_target(target(name, level), capsule, platform="cpu")
    return True
