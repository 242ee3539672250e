"""Sums over pixels and what they are the adjoint of: two primitives, closed under differentiation.

With pixels u `[g, n, c]`, shifts s and weights v `[g, 1, c]`,

    mix(u, s, v, o) = Σ_k (u_k - s_k) v_k + o,    moments(w, u, s) = Σ w and Σ (u_k - s_k) w,

the sums of `moments` being those over the pixels n. All derivatives of a batch norm are made of
them. Pixels may be of low precision: each is read as it is, and nothing but the result is rounded.
XLA's CPU compiler fuses nothing into sums over pixels and would write their terms to memory first,
so CPUs call our own where there is one.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from invclr_jax.native.library import library, target

Pixels = Float[Array, "g n c"]
Channels = Float[Array, "g 1 c"]

LANES = 16
"""Our own sums take channels in multiples of so many."""


class Shifted(NamedTuple):
    """Pixels, of which a number for each channel is subtracted unless it is None."""

    pixels: Any
    shift: Any = None


def mix(
    parts: Sequence[tuple[Shifted, Channels]], offset: Channels, shape: tuple[int, ...], dtype: Any
) -> Pixels:
    """Σ_k (u_k - s_k) v_k + o, in the arithmetic of o, rounded to `dtype`.

    Args:
      parts: pixels of this shape, and their weights.
      offset: o; its type is that of shifts and weights too.
      shape: of the result.
      dtype: of the result.
    """
    operands: list[Any] = []
    shifted = []
    for of, weight in parts:
        operands += [x for x in (*of, weight) if x is not None]
        shifted.append(of.shift is not None)
    options = {"shifted": tuple(shifted), "shape": tuple(shape), "dtype": jnp.dtype(dtype)}
    return _mix_p.bind(*operands, offset, **options)[0]


def moments(w: Pixels, of: Sequence[Shifted], dtype: Any) -> list[Channels]:
    """Σ w, then Σ (u_k - s_k) w for each part, over the pixels.

    Args:
      w: pixels.
      of: u and s.
      dtype: of shifts, sums and arithmetic.
    """
    shifted = tuple(part.shift is not None for part in of)
    operands = [x for part in of for x in part if x is not None]
    return _moments_p.bind(w, *operands, shifted=shifted, dtype=jnp.dtype(dtype))


def squares(x: Pixels, shift: Channels) -> Channels:
    """Σ (x - s)² over the pixels, in the type of s. It has no derivative: use a closed form."""
    return _squares_p.bind(x, shift)[0]


# What is computed ------------------------------------------------------------------------------


def _mix(*operands, shifted, shape, dtype):
    total = operands[-1]
    for part, weight in _weighted(operands[:-1], shifted):
        total = total + _values(part, total.dtype) * weight
    return [jnp.broadcast_to(total, shape).astype(dtype)]


def _moments(w, *operands, shifted, dtype):
    w = w.astype(dtype)
    sums = [w, *(_values(part, dtype) * w for part in _shifted(operands, shifted))]
    return [x.sum(1, keepdims=True) for x in sums]


def _squares(x, shift):
    return [jnp.square(x.astype(shift.dtype) - shift).sum(1, keepdims=True)]


def _moments_on_cpu(w, *operands, shifted, dtype):
    parts = _shifted(operands, shifted)
    if not _suits(dtype, w, *(part.pixels for part in parts)):
        return _moments(w, *operands, shifted=shifted, dtype=dtype)
    if not parts:
        return [_call("pixel_sums", 1, w)]
    zero = jnp.zeros((len(w), 1, w.shape[-1]), dtype)
    found = [
        _call("pixel_products", 2, w, part.pixels, zero if part.shift is None else part.shift)
        for part in parts
    ]
    return [found[0][0], *(products for _, products in found)]


def _squares_on_cpu(x, shift):
    return [_call("pixel_squares", 1, x, shift)] if _suits(shift.dtype, x) else _squares(x, shift)


def _suits(dtype, w, *others) -> bool:
    """Whether our own sums take these pixels; shifts and sums are float32 there."""
    types = all(x.dtype in (jnp.float32, jnp.bfloat16) for x in (w, *others))
    whole = w.size > 0 and w.shape[-1] % LANES == 0
    return dtype == jnp.float32 and types and whole and library() is not None


def _call(name: str, results: int, *operands):
    level = library()
    if level != "avx512_bf16":
        operands = tuple(x.astype(jnp.float32) for x in operands)
    sums = jax.ShapeDtypeStruct((len(operands[0]), 1, operands[0].shape[-1]), jnp.float32)
    found = jax.ffi.ffi_call(target(name, level), [sums] * results)(*operands)
    return found[0] if results == 1 else found


def _values(part: Shifted, dtype):
    values = part.pixels.astype(dtype)
    return values if part.shift is None else values - part.shift


# Operands --------------------------------------------------------------------------------------


def _shifted(operands: Sequence, shifted: Sequence[bool]) -> list[Shifted]:
    """Flat operands of `moments` as parts."""
    flat = iter(operands)
    return [Shifted(next(flat), next(flat) if has else None) for has in shifted]


def _weighted(operands: Sequence, shifted: Sequence[bool]) -> list[tuple[Shifted, Any]]:
    """Flat operands of `mix` as parts and weights."""
    flat = iter(operands)
    return [(Shifted(next(flat), next(flat) if has else None), next(flat)) for has in shifted]


def _is_zero(tangent) -> bool:
    return tangent is None or type(tangent) is ad.Zero


# Derivatives -----------------------------------------------------------------------------------


def _mix_jvp(primals, tangents, *, shifted, shape, dtype):
    out = _mix_p.bind(*primals, shifted=shifted, shape=shape, dtype=dtype)
    offset, d_offset = primals[-1], tangents[-1]
    total = jnp.zeros_like(offset) if _is_zero(d_offset) else d_offset
    parts = []
    both = (_weighted(flat[:-1], shifted) for flat in (primals, tangents))
    for (of, weight), (d_of, d_weight) in zip(*both, strict=True):
        if not _is_zero(d_of.pixels):
            parts.append((Shifted(d_of.pixels), weight))
        if not _is_zero(d_weight):
            parts.append((of, d_weight))
        if not _is_zero(d_of.shift):
            total = total - weight * d_of.shift
    return out, [mix(parts, total, shape, dtype)]


def _mix_transpose(cotangents, *operands, shifted, shape, dtype):
    """Linear in the offset, and in the pixels or the weight of each part, but in no shift."""
    (ct,), offset = cotangents, operands[-1]
    if _is_zero(ct):
        return [None] * len(operands)
    acc = offset.aval.dtype if ad.is_undefined_primal(offset) else offset.dtype
    parts = _weighted(operands[:-1], shifted)
    asked = [of for of, weight in parts if ad.is_undefined_primal(weight)]
    total, *found = moments(ct, asked, acc)
    products = iter(found)
    results: list[Any] = []
    for of, weight in parts:
        if ad.is_undefined_primal(of.pixels):
            aval = of.pixels.aval
            zero = jnp.zeros((aval.shape[0], 1, aval.shape[2]), acc)
            results.append(mix([(Shifted(ct), weight)], zero, aval.shape, aval.dtype))
        else:
            results.append(None)
        if of.shift is not None:
            results.append(None)
        results.append(next(products) if ad.is_undefined_primal(weight) else None)
    return [*results, total if ad.is_undefined_primal(offset) else None]


def _moments_jvp(primals, tangents, *, shifted, dtype):
    w, d_w = primals[0], tangents[0]
    out = _moments_p.bind(*primals, shifted=shifted, dtype=dtype)
    parts, d_parts = (_shifted(flat[1:], shifted) for flat in (primals, tangents))
    d_out = list(map(jnp.zeros_like, out)) if _is_zero(d_w) else moments(d_w, parts, dtype)
    for k, d_of in enumerate(d_parts, start=1):
        if not _is_zero(d_of.pixels):
            d_out[k] = d_out[k] + moments(w, [Shifted(d_of.pixels)], dtype)[1]
        if not _is_zero(d_of.shift):
            d_out[k] = d_out[k] - d_of.shift * out[0]
    return out, d_out


def _moments_transpose(cotangents, w, *operands, shifted, dtype):
    """Linear in w or in the pixels of parts, but in no shift."""
    ct, *products = cotangents
    parts = _shifted(operands, shifted)
    aval = w.aval if ad.is_undefined_primal(w) else w
    zero = jnp.zeros((aval.shape[0], 1, aval.shape[2]), dtype)
    if ad.is_undefined_primal(w):
        weighted = [
            (of, each) for of, each in zip(parts, products, strict=True) if not _is_zero(each)
        ]
        total = zero if _is_zero(ct) else ct
        return [mix(weighted, total, aval.shape, aval.dtype), *(None for _ in operands)]
    results: list[Any] = [None]
    for of, each in zip(parts, products, strict=True):
        if ad.is_undefined_primal(of.pixels) and not _is_zero(each):
            like = of.pixels.aval
            results.append(mix([(Shifted(w), each)], zero, like.shape, like.dtype))
        else:
            results.append(None)
        if of.shift is not None:
            results.append(None)
    return results


# Primitives ------------------------------------------------------------------------------------


def _primitive(name: str, shapes, compute, on_cpu) -> Primitive:
    """A primitive of several results.

    Args:
      name: shown in traced programs.
      shapes: abstract operands -> abstract results.
      compute: operands -> results.
      on_cpu: the same for CPUs.
    """
    primitive = Primitive(name)
    primitive.multiple_results = True

    @functools.cache
    def compiled(**options):
        return jax.jit(functools.partial(primitive.bind, **options))

    primitive.def_abstract_eval(shapes)
    primitive.def_impl(lambda *operands, **options: compiled(**options)(*operands))
    mlir.register_lowering(primitive, mlir.lower_fun(compute, multiple_results=True))
    mlir.register_lowering(primitive, mlir.lower_fun(on_cpu, multiple_results=True), "cpu")
    batching.primitive_batchers[primitive] = functools.partial(_batched, primitive)
    return primitive


def _batched(primitive: Primitive, operands, axes, **options):
    """`vmap` as more groups."""
    size = next(x.shape[axis] for x, axis in zip(operands, axes, strict=True) if axis is not None)

    def groups(x, axis):
        x = jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
        return x.reshape(-1, *x.shape[2:])

    if "shape" in options:
        options["shape"] = (size * options["shape"][0], *options["shape"][1:])
    found = primitive.bind(*map(groups, operands, axes), **options)
    return [x.reshape(size, -1, *x.shape[1:]) for x in found], [0] * len(found)


def _sums_like(w, count: int, dtype) -> list:
    return [jax.core.ShapedArray((w.shape[0], 1, w.shape[2]), dtype)] * count


_mix_p = _primitive(
    "mix_pixels", lambda *_, shape, dtype, **__: [jax.core.ShapedArray(shape, dtype)], _mix, _mix
)
_moments_p = _primitive(
    "pixel_moments",
    lambda w, *_, shifted, dtype: _sums_like(w, 1 + len(shifted), dtype),
    _moments,
    _moments_on_cpu,
)
_squares_p = _primitive(
    "pixel_squares", lambda x, shift: _sums_like(x, 1, shift.dtype), _squares, _squares_on_cpu
)
ad.primitive_jvps[_mix_p] = _mix_jvp
ad.primitive_jvps[_moments_p] = _moments_jvp
ad.primitive_transposes[_mix_p] = _mix_transpose
ad.primitive_transposes[_moments_p] = _moments_transpose
