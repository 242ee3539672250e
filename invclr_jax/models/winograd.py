"""3×3 convolutions on CPUs by Winograd's products: `invclr_jax/native` as primitives of JAX.

There are two, both bilinear: the convolution x * w and the gradient of ⟨x * w, y⟩ in w. The
gradient in x is again a convolution, of y with the kernel turned around. So these two are closed
under differentiation: every derivative, of any order, forward or reverse, is made of them.
"""

import ctypes
import functools
import importlib.util
import pathlib

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from invclr_jax import native

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


def suits(x: Array, kernel: Array) -> bool:
    """Whether `convolve` takes these images and this kernel, on this machine.

    Args:
      x: images `[n, h, v, c]`.
      kernel: `[k, k, c, f]`.
    """
    return (
        kernel.shape[:2] == (3, 3)
        and kernel.shape[2] % CHANNELS == kernel.shape[3] % CHANNELS == 0
        and x.dtype == kernel.dtype == jnp.float32
        and library() is not None
    )


def convolve(
    x: Float[Array, "n h v c"], kernel: Float[Array, "3 3 c f"]
) -> Float[Array, "n h v f"]:
    """Convolves with stride 1, one zero padded on each side; see `suits`."""
    return _convolve_p.bind(x, kernel)


@functools.cache
def library() -> str | None:
    """The name of the library that this processor can use, registered with XLA.

    Returns:
      None where there is none: not compiled, another kind of processor, or an accelerator.
    """
    if jax.default_backend() != "cpu":
        return None
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


def _kernel_gradient(
    x: Float[Array, "n h v c"], y: Float[Array, "n h v f"]
) -> Float[Array, "3 3 c f"]:
    return _kernel_gradient_p.bind(x, y)


def _input_gradient(
    kernel: Float[Array, "3 3 c f"], y: Float[Array, "n h v f"]
) -> Float[Array, "n h v c"]:
    return convolve(y, kernel[::-1, ::-1].swapaxes(2, 3))


def _primitive(name: str, shape) -> Primitive:
    """A primitive that calls a function of the library.

    Args:
      name: one of `FUNCTIONS`.
      shape: of the result, from those of the two operands.
    """

    def call(a, b):
        result = jax.ShapeDtypeStruct(shape(a.shape, b.shape), a.dtype)
        return jax.ffi.ffi_call(_target(name, library()), result)(a, b)

    primitive = Primitive(f"winograd_{name}")
    primitive.def_impl(jax.jit(call))
    primitive.def_abstract_eval(lambda a, b: jax.core.ShapedArray(shape(a.shape, b.shape), a.dtype))
    mlir.register_lowering(primitive, mlir.lower_fun(call, multiple_results=False), "cpu")
    batching.primitive_batchers[primitive] = functools.partial(_one_by_one, primitive)
    return primitive


def _one_by_one(primitive: Primitive, operands, axes):
    """`vmap` as a loop: there is no call with several kernels."""
    mapped = {
        i: jnp.moveaxis(operands[i], axis, 0) for i, axis in enumerate(axes) if axis is not None
    }

    def one(parts):
        return primitive.bind(*(parts.get(i, x) for i, x in enumerate(operands)))

    return jax.lax.map(one, mapped), 0


def _fold_images(operands, axes):
    """`vmap` over images only: one call with more of them."""
    (x, kernel), (axis, kernel_axis) = operands, axes
    if kernel_axis is not None:
        return _one_by_one(_convolve_p, operands, axes)
    x = jnp.moveaxis(x, axis, 0)
    y = convolve(x.reshape(-1, *x.shape[2:]), kernel)
    return y.reshape(*x.shape[:2], *y.shape[1:]), 0


def _output_shape(x, kernel):
    if (len(x), len(kernel)) != (4, 4) or kernel[:3] != (3, 3, x[3]):
        raise ValueError(
            f"images {x} do not suit a kernel {kernel}: give [n, h, v, c] and [3, 3, c, f]"
        )
    return (*x[:3], kernel[3])


def _kernel_shape(x, y):
    if len(x) != 4 or y[:-1] != x[:-1]:
        raise ValueError(f"images {x} do not suit outputs {y}: all but the channels must be equal")
    return (3, 3, x[3], y[3])


_convolve_p = _primitive("convolve", _output_shape)
batching.primitive_batchers[_convolve_p] = _fold_images
ad.defbilinear(
    _convolve_p,
    lambda y, x, kernel: _input_gradient(kernel, y),
    lambda y, x, kernel: _kernel_gradient(x, y),
)

_kernel_gradient_p = _primitive("kernel_gradient", _kernel_shape)
ad.defbilinear(
    _kernel_gradient_p,
    lambda kernel, x, y: _input_gradient(kernel, y),
    lambda kernel, x, y: convolve(x, kernel),
)
