"""The convolution and its two gradients as primitives of JAX, lowered for each platform.

All three are bilinear, and they are closed under differentiation: with ⟨·, ·⟩ the sum of products,

    ⟨convolve(x, w), y⟩ = ⟨x, input_gradient(y, w)⟩ = ⟨w, kernel_gradient(x, y)⟩,

so that every derivative of any order, forward or reverse, is made of them. A traced program does
not know its platform. When it is lowered, CPUs get what is fastest there (`forms`, `library`), all
others XLA's convolution (of tokens, product) at the precision that `models.dtypes.PRECISIONS`
explains.
"""

import functools

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from invclr_jax.models import forms, library


def convolve(
    x: Float[Array, "n h v c"],
    kernel: Float[Array, "k k c f"],
    stride: int,
    precision: str = "default",
) -> Float[Array, "n p q f"]:
    """Convolves images, (k-1)/2 zeros padded on each side."""
    return _convolve_p.bind(x, kernel, stride=stride, precision=precision)


def multiply_tokens(
    x: Float[Array, "n t c"], kernel: Float[Array, "c f"], precision: str = "default"
) -> Float[Array, "n t f"]:
    """x · kernel, as a 1×1 convolution of pictures with one row."""
    return convolve(x[:, None], kernel[None, None], 1, precision)[:, 0]


def kernel_gradient(
    x: Float[Array, "n h v c"],
    y: Float[Array, "n p q f"],
    stride: int,
    size: int,
    precision: str = "default",
) -> Float[Array, "size size c f"]:
    """The gradient of ⟨convolve(x, w), y⟩ in w."""
    return _kernel_gradient_p.bind(x, y, stride=stride, size=size, precision=precision)


def input_gradient(
    y: Float[Array, "n p q f"],
    kernel: Float[Array, "k k c f"],
    stride: int,
    pixels: tuple,
    precision: str = "default",
) -> Float[Array, "n h v c"]:
    """The gradient of ⟨convolve(x, w), y⟩ in x, whose height and width are `pixels`."""
    return _input_gradient_p.bind(y, kernel, stride=stride, pixels=pixels, precision=precision)


# Shapes ----------------------------------------------------------------------------------------


def _convolve_shape(x, kernel, *, stride, **_):
    square = len(x) == len(kernel) == 4 and kernel[0] == kernel[1] and kernel[0] % 2 == 1
    if not square or kernel[2] != x[3]:
        raise ValueError(
            f"images {x} do not suit a kernel {kernel}: give [n, h, v, c] and [k, k, c, f], k odd"
        )
    return (x[0], *(forms.output_size(size, stride) for size in x[1:3]), kernel[3])


def _kernel_shape(x, y, *, stride, size, **_):
    if len(x) != 4 or y[:-1] != _convolve_shape(x, (size, size, x[3], 1), stride=stride)[:-1]:
        raise ValueError(f"images {x} do not suit outputs {y} of a kernel of size {size}")
    return (size, size, x[3], y[3])


def _input_shape(y, kernel, *, stride, pixels, **_):
    x = (y[0], *pixels, kernel[2])
    if _convolve_shape(x, kernel, stride=stride) != y:
        raise ValueError(f"outputs {y} do not suit a kernel {kernel} and images {x}")
    return x


# What is computed ------------------------------------------------------------------------------


def _convolve_by(form, x, kernel, *, stride, precision):
    return form(x, kernel, stride, precision)


def _kernel_gradient_by(form, x, y, *, stride, size, precision):
    kernel = jax.ShapeDtypeStruct(
        _kernel_shape(x.shape, y.shape, stride=stride, size=size), x.dtype
    )
    return jax.linear_transpose(lambda w: form(x, w, stride, precision), kernel)(y)[0]


def _input_gradient_by(form, y, kernel, *, stride, pixels, precision):
    x = jax.ShapeDtypeStruct((len(y), *pixels, kernel.shape[2]), y.dtype)
    return jax.linear_transpose(lambda x: form(x, kernel, stride, precision), x)(y)[0]


def _convolve_on_cpu(x, kernel, *, stride, precision):
    family = forms.native(x, kernel, stride)
    if family is not None:
        shape = _convolve_shape(x.shape, kernel.shape, stride=stride)
        return library.call(family, "convolve", x, kernel, shape, stride)
    form = forms.fastest_on_cpus(x, kernel, stride)
    return _convolve_by(form, x, kernel, stride=stride, precision=precision)


def _kernel_gradient_on_cpu(x, y, *, stride, size, precision):
    kernel = jax.ShapeDtypeStruct((size, size, x.shape[3], y.shape[3]), y.dtype)
    family = forms.native(x, kernel, stride, "kernel_gradient")
    if family is not None:
        return library.call(family, "kernel_gradient", x, y, kernel.shape, stride)
    form = forms.fastest_on_cpus(x, kernel, stride)
    return _kernel_gradient_by(form, x, y, stride=stride, size=size, precision=precision)


def _input_gradient_on_cpu(y, kernel, *, stride, pixels, precision):
    x = jax.ShapeDtypeStruct((len(y), *pixels, kernel.shape[2]), y.dtype)
    family = forms.native(x, kernel, stride)
    if family is not None:
        return library.call(family, "input_gradient", y, kernel, x.shape, stride)
    form = forms.fastest_on_cpus(x, kernel, stride)
    return _input_gradient_by(form, y, kernel, stride=stride, pixels=pixels, precision=precision)


# Primitives ------------------------------------------------------------------------------------


def _primitive(name: str, shape, compute, on_cpu) -> Primitive:
    """A primitive of two operands.

    Args:
      name: shown in traced programs.
      shape: shapes of the operands -> shape of the result.
      compute: (form, operands) -> result, for platforms other than CPUs.
      on_cpu: operands -> result, for CPUs.
    """
    primitive = Primitive(name)

    def abstract(a, b, **options):
        return jax.core.ShapedArray(shape(a.shape, b.shape, **options), a.dtype)

    @functools.cache
    def compiled(**options):
        return jax.jit(functools.partial(primitive.bind, **options))

    primitive.def_abstract_eval(abstract)
    primitive.def_impl(lambda a, b, **options: compiled(**options)(a, b))
    by_xla = functools.partial(compute, forms.on_accelerators)
    mlir.register_lowering(primitive, mlir.lower_fun(by_xla, multiple_results=False))
    mlir.register_lowering(primitive, mlir.lower_fun(on_cpu, multiple_results=False), "cpu")
    batching.primitive_batchers[primitive] = functools.partial(_one_by_one, primitive)
    return primitive


def _one_by_one(primitive: Primitive, operands, axes, **options):
    """`vmap` as a loop: there is no call with several kernels."""
    mapped = {
        i: jnp.moveaxis(operands[i], axis, 0) for i, axis in enumerate(axes) if axis is not None
    }

    def one(parts):
        return primitive.bind(*(parts.get(i, x) for i, x in enumerate(operands)), **options)

    return jax.lax.map(one, mapped), 0


def _fold_images(primitive: Primitive, operands, axes, **options):
    """`vmap` over images only: one call with more of them."""
    (images, kernel), (axis, kernel_axis) = operands, axes
    if kernel_axis is not None:
        return _one_by_one(primitive, operands, axes, **options)
    images = jnp.moveaxis(images, axis, 0)
    result = primitive.bind(images.reshape(-1, *images.shape[2:]), kernel, **options)
    return result.reshape(*images.shape[:2], *result.shape[1:]), 0


_convolve_p = _primitive("convolve", _convolve_shape, _convolve_by, _convolve_on_cpu)
batching.primitive_batchers[_convolve_p] = functools.partial(_fold_images, _convolve_p)
ad.defbilinear(
    _convolve_p,
    lambda y, x, w, *, stride, precision: input_gradient(
        y, w, stride, x.aval.shape[1:3], precision
    ),
    lambda y, x, w, *, stride, precision: kernel_gradient(x, y, stride, w.aval.shape[0], precision),
)

_kernel_gradient_p = _primitive(
    "kernel_gradient", _kernel_shape, _kernel_gradient_by, _kernel_gradient_on_cpu
)
ad.defbilinear(
    _kernel_gradient_p,
    lambda w, x, y, *, stride, size, precision: input_gradient(
        y, w, stride, x.aval.shape[1:3], precision
    ),
    lambda w, x, y, *, stride, size, precision: convolve(x, w, stride, precision),
)

_input_gradient_p = _primitive(
    "input_gradient", _input_shape, _input_gradient_by, _input_gradient_on_cpu
)
batching.primitive_batchers[_input_gradient_p] = functools.partial(_fold_images, _input_gradient_p)
ad.defbilinear(
    _input_gradient_p,
    lambda x, y, w, *, stride, pixels, precision: convolve(x, w, stride, precision),
    lambda x, y, w, *, stride, pixels, precision: kernel_gradient(
        x, y, stride, w.aval.shape[0], precision
    ),
)
