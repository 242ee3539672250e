"""Bilinear interpolation and its gradients as primitives of JAX, lowered for each platform.

With derivatives o of the interpolation I in the positions (`cells` numbers them), and weights w:

    interpolate(x, w) = sum_o w_o ∂_o I(x)

is linear in the pictures x and in the weights. With ⟨·, ·⟩ the sum of products

    ⟨interpolate(x, w), y⟩ = ⟨x, image_gradient(y, w)⟩ = ⟨w, weight_gradients(x, y)⟩,

and a derivative in the positions is the same with other weights: moved to the next derivative. So
these three are closed under differentiation, and every derivative of any order, forward or reverse,
is made of them. When a program is lowered, CPUs get our C++ (`native.library`), all others gathers.
"""

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from invclr_jax.native import library
from invclr_jax.transforms import cells
from invclr_jax.transforms.cells import DOWN, RIGHT


def interpolate(
    images: Float[Array, "n h w c"],
    rows: Float[Array, "n height width"],
    columns: Float[Array, "n height width"],
) -> Float[Array, "n height width c"]:
    """Bilinear interpolation at fractional pixel positions; beyond the edge, edge pixels.

    Derivatives in a position are 0 where it is at the edge or beyond.

    Args:
      images: `[n, h, w, c]`.
      rows: position of each sample, 0 at the centre of the first row of pixels.
      columns: likewise.

    Returns:
      `[n, height, width, c]` in the widest of the arguments' dtypes.
    """
    dtype = jnp.result_type(images, rows, columns)
    images, rows, columns = (jnp.asarray(v, dtype) for v in (images, rows, columns))
    return _interpolate(images, rows, columns, {})


# Weights: derivative -> array. None at all: the value itself.
Weights = dict[int, Array]


def _interpolate(x: Array, rows: Array, columns: Array, weights: Weights) -> Array:
    return _interpolate_p.bind(x, rows, columns, *weights.values(), orders=tuple(weights))[0]


def _image_gradient(y: Array, rows: Array, columns: Array, weights: Weights, pixels) -> Array:
    return _image_gradient_p.bind(
        y, rows, columns, *weights.values(), orders=tuple(weights), pixels=pixels
    )[0]


def _weight_gradients(x: Array, rows: Array, columns: Array, y: Array, orders) -> Weights:
    values = _weight_gradients_p.bind(x, rows, columns, y, orders=tuple(orders))
    return dict(zip(orders, values, strict=True))


# Shapes ----------------------------------------------------------------------------------------


def _check(images: Sequence[int], samples: Sequence[int], *same: Sequence[int]) -> None:
    """In C++ what does not fit would be read beyond its end."""
    fit = len(images) == 4 and len(samples) == 3 and images[0] == samples[0]
    if not fit or 0 in images[1:3] or any(shape != samples for shape in same):
        raise ValueError(
            f"pictures {images} do not suit positions {(samples, *same)}: give [n, h, w, c] with "
            "at least one pixel, and [n, height, width] for each of the others"
        )


def _interpolated_shape(x, rows, *others, orders):
    _check(x, rows, *others)
    return [(*rows, x[3])]


def _image_shape(y, rows, *others, orders, pixels):
    _check((*y[:1], *pixels, *y[3:]), rows, *others, y[:3])
    return [(y[0], *pixels, y[3])]


def _weight_shapes(x, rows, columns, y, *, orders):
    _check(x, rows, columns, y[:3])
    _check((*y[:1], *x[1:3], *y[3:]), rows)
    return [rows] * len(orders)


# On CPUs ---------------------------------------------------------------------------------------


def _on_cpu(name: str, shapes, otherwise, *operands, **options):
    """Calls our C++ where it is compiled and knows the operands' type."""
    dtype, given = operands[0].dtype, [operand.shape for operand in operands]
    results = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes(*given, **options)]
    large = any(math.prod(v.shape[1:]) >= 2**31 for v in (*operands, *results))  # its counter
    if library.library() is None or large or dtype not in (jnp.float32, jnp.float64):
        return otherwise(*operands, **options)
    call = jax.ffi.ffi_call(library.target(name, library.library()), results)
    return call(*operands, orders=np.array(options["orders"], np.int64))


# Derivatives -----------------------------------------------------------------------------------


def _given(tangents: Sequence) -> list[Array | None]:
    """Tangents as arrays; None where they are zero."""
    return [None if type(tangent) is ad.Zero else tangent for tangent in tangents]


def _sum(terms: Sequence[Array | None], like: Array):
    """The sum of what is not None, as a tangent of `like`."""
    given = [term for term in terms if term is not None]
    return sum(given[1:], given[0]) if given else ad.Zero(jax.typeof(like).to_tangent_aval())


def _steps(order: int, moves: Sequence[Array | None]) -> list[tuple[int, Array]]:
    """The derivatives next to one, each with the tangent of the position it is taken in."""
    steps = zip((DOWN, RIGHT), moves, strict=True)
    return [(order | step, move) for step, move in steps if move is not None and not order & step]


def _changed(weights: Weights, moves: Sequence[Array | None], changes: Sequence) -> Weights:
    """Weights of the derivative in the positions (`moves`) and in the weights (`changes`)."""
    terms = [pair for pair in zip(weights, changes, strict=True) if pair[1] is not None]
    for order, weight in weights.items() or {0: 1}.items():
        terms += [(step, weight * move) for step, move in _steps(order, moves)]
    changed: Weights = {}
    for order, term in terms:
        changed[order] = changed[order] + term if order in changed else term
    return changed


def _weighted_jvp(function, primals, tangents, *, orders, **options):
    """Of `_interpolate` and `_image_gradient`: linear in the first operand and in the weights."""
    first, rows, columns, *values = primals
    change, *others = _given(tangents)
    weights = dict(zip(orders, values, strict=True))
    changed = _changed(weights, others[:2], others[2:])
    call = functools.partial(function, rows=rows, columns=columns, **options)
    value = call(first, weights=weights)
    terms = [
        None if change is None else call(change, weights=weights),
        call(first, weights=changed) if changed else None,
    ]
    return [value], [_sum(terms, value)]


def _weight_gradients_jvp(primals, tangents, *, orders):
    x, rows, columns, y = primals
    x_change, *moves, y_change = _given(tangents)
    call = functools.partial(_weight_gradients, rows=rows, columns=columns)
    next_to = {order: _steps(order, moves) for order in orders}
    needed = {step for steps in next_to.values() for step, _ in steps}
    values = call(x, y=y, orders=sorted({*orders, *needed}))
    by_x = {} if x_change is None else call(x_change, y=y, orders=orders)
    by_y = {} if y_change is None else call(x, y=y_change, orders=orders)

    def change(order):
        by_position = [values[step] * move for step, move in next_to[order]]
        return _sum([by_x.get(order), by_y.get(order), *by_position], values[order])

    return [values[order] for order in orders], [change(order) for order in orders]


def _interpolate_transpose(cotangents, x, rows, columns, *values, orders):
    (y,), rest = cotangents, [None] * (2 + len(values))
    if ad.is_undefined_primal(x):
        weights = dict(zip(orders, values, strict=True))
        return [_image_gradient(y, rows, columns, weights, x.aval.shape[1:3]), *rest]
    return [None, None, None, *_weights_transpose(x, rows, columns, y, values, orders)]


def _image_gradient_transpose(cotangents, y, rows, columns, *values, orders, pixels):
    (x,), rest = cotangents, [None] * (2 + len(values))
    if ad.is_undefined_primal(y):
        weights = dict(zip(orders, values, strict=True))
        return [_interpolate(x, rows, columns, weights), *rest]
    return [None, None, None, *_weights_transpose(x, rows, columns, y, values, orders)]


def _weights_transpose(x, rows, columns, y, values, orders):
    """Cotangents of those weights that are asked for."""
    asked = [o for o, v in zip(orders, values, strict=True) if ad.is_undefined_primal(v)]
    gradients = _weight_gradients(x, rows, columns, y, asked)
    return [gradients.get(order) for order in orders]


def _weight_gradients_transpose(cotangents, x, rows, columns, y, *, orders):
    given = zip(orders, _given(cotangents), strict=True)
    weights = {order: cotangent for order, cotangent in given if cotangent is not None}
    if ad.is_undefined_primal(x):
        return [_image_gradient(y, rows, columns, weights, x.aval.shape[1:3]), None, None, None]
    return [None, None, None, _interpolate(x, rows, columns, weights)]


# Primitives ------------------------------------------------------------------------------------


def _primitive(name: str, shapes, by_gathers, jvp, transpose) -> Primitive:
    """A primitive whose operands and results all have the pictures as their first axis.

    Args:
      name: of the function in C++; shown in traced programs.
      shapes: shapes of the operands -> shapes of the results.
      by_gathers: operands -> results, where there is no C++.
      jvp: its rule.
      transpose: likewise.
    """
    primitive = Primitive(name)
    primitive.multiple_results = True

    def abstract(*operands, **options):
        if len({operand.dtype for operand in operands}) != 1:
            raise ValueError(f"{name} has operands of several dtypes: {operands}; make them one")
        return [
            jax.core.ShapedArray(shape, operands[0].dtype)
            for shape in shapes(*(operand.shape for operand in operands), **options)
        ]

    @functools.cache
    def compiled(**options):
        return jax.jit(functools.partial(primitive.bind, **options))

    primitive.def_abstract_eval(abstract)
    primitive.def_impl(lambda *operands, **options: compiled(**options)(*operands))
    on_cpu = functools.partial(_on_cpu, name, shapes, by_gathers)
    mlir.register_lowering(primitive, mlir.lower_fun(by_gathers, multiple_results=True))
    mlir.register_lowering(primitive, mlir.lower_fun(on_cpu, multiple_results=True), "cpu")
    batching.primitive_batchers[primitive] = functools.partial(_fold, primitive)
    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose
    return primitive


def _fold(primitive: Primitive, operands, axes, **options):
    """`vmap` as one call with more pictures."""
    size = next(v.shape[axis] for v, axis in zip(operands, axes, strict=True) if axis is not None)
    parts = [batching.bdim_at_front(v, axis, size) for v, axis in zip(operands, axes, strict=True)]
    count = parts[0].shape[1]
    pictures = (v.reshape(size * count, *v.shape[2:]) for v in parts)
    results = primitive.bind(*pictures, **options)
    return [v.reshape(size, count, *v.shape[1:]) for v in results], [0] * len(results)


_interpolate_p = _primitive(
    "interpolate",
    _interpolated_shape,
    lambda *operands, **options: [cells.interpolate(*operands, **options)],
    functools.partial(_weighted_jvp, _interpolate),
    _interpolate_transpose,
)
_image_gradient_p = _primitive(
    "image_gradient",
    _image_shape,
    lambda *operands, **options: [cells.image_gradient(*operands, **options)],
    functools.partial(_weighted_jvp, _image_gradient),
    _image_gradient_transpose,
)
_weight_gradients_p = _primitive(
    "weight_gradients",
    _weight_shapes,
    cells.weight_gradients,
    _weight_gradients_jvp,
    _weight_gradients_transpose,
)
