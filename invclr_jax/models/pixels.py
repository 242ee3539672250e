"""All pixels of a batch along one axis and back, as primitives that are lowered for each platform.

Batch norm does not care for the order of pixels, but platforms do. CPUs keep images row after row,
and XLA's sums over one axis use all their cores, those over several (images, rows, columns) do not.
TPUs keep the images of a batch next to each other for convolutions: there the order is by row,
column and image, so that neither way copies all activations.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float


def flatten(x: Float[Array, "g n *space c"]) -> Float[Array, "g pixels c"]:
    """The pixels of each group along one axis, in an order of the platform's own."""
    return x if x.ndim == 3 else _flatten_p.bind(x)


def unflatten(pixels: Float[Array, "g pixels c"], shape: tuple[int, ...]) -> Float[Array, "..."]:
    """The inverse of `flatten`, for `x` of this shape."""
    return pixels if len(shape) == 3 else _unflatten_p.bind(pixels, shape=shape)


def _images_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes (groups, rows, columns, images, channels)."""
    return (0, *range(2, len(shape) - 1), 1, len(shape) - 1)


def _flatten_by_row(x):
    return x.reshape(x.shape[0], -1, x.shape[-1])


def _flatten_by_pixel(x):
    return _flatten_by_row(x.transpose(_images_last(x.shape)))


def _unflatten_by_row(pixels, *, shape):
    return pixels.reshape(shape)


def _unflatten_by_pixel(pixels, *, shape):
    axes = _images_last(shape)
    moved = pixels.reshape([shape[axis] for axis in axes])
    return moved.transpose([axes.index(axis) for axis in range(len(axes))])


def _primitive(name: str, shape, by_row, by_pixel, batched) -> Primitive:
    primitive = Primitive(name)

    @functools.cache
    def compiled(**options):
        return jax.jit(functools.partial(primitive.bind, **options))

    primitive.def_abstract_eval(lambda x, **o: jax.core.ShapedArray(shape(x.shape, **o), x.dtype))
    primitive.def_impl(lambda x, **options: compiled(**options)(x))
    mlir.register_lowering(primitive, mlir.lower_fun(by_row, multiple_results=False))
    mlir.register_lowering(primitive, mlir.lower_fun(by_pixel, multiple_results=False), "tpu")
    batching.primitive_batchers[primitive] = batched
    return primitive


def _more_groups(operands, axes):
    """A mapped axis together with the groups, and its size."""
    x = jnp.moveaxis(operands[0], axes[0], 0)
    return x.reshape(-1, *x.shape[2:]), x.shape[0]


def _flatten_batched(operands, axes):
    x, size = _more_groups(operands, axes)
    return _flatten_p.bind(x).reshape(size, -1, math.prod(x.shape[1:-1]), x.shape[-1]), 0


def _unflatten_batched(operands, axes, *, shape):
    pixels, size = _more_groups(operands, axes)
    found = _unflatten_p.bind(pixels, shape=(len(pixels), *shape[1:]))
    return found.reshape(size, *shape), 0


_flatten_p = _primitive(
    "flatten_pixels",
    lambda shape: (shape[0], math.prod(shape[1:-1]), shape[-1]),
    _flatten_by_row,
    _flatten_by_pixel,
    _flatten_batched,
)
_unflatten_p = _primitive(
    "unflatten_pixels",
    lambda _, shape: shape,
    _unflatten_by_row,
    _unflatten_by_pixel,
    _unflatten_batched,
)
ad.deflinear2(_flatten_p, lambda ct, x: [unflatten(ct, x.aval.shape)])
ad.deflinear2(_unflatten_p, lambda ct, pixels, *, shape: [flatten(ct)])
