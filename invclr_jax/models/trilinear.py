"""A convolution made of matrix products, to any order of differentiation.

A convolution y = x * w belongs to the trilinear form ⟨x * w, y⟩ of images x, kernel w and cotangent
y. Its three partial contractions are the convolution itself, the gradient in x and the gradient in
w, and each is the derivative of another: the family is closed under differentiation. One primitive
holds all three, so that reverse over reverse and reverse over forward mode use the same fast
programs as the first derivative does.
"""

import functools

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from invclr_jax.models import winograd
from invclr_jax.models.blocking import images_at_a_time

WINOGRAD_CHANNELS = 128
"""From so many input and output channels on Winograd's products are faster."""

_ROLES = ("x", "w", "y")


def convolve(
    x: Float[Array, "n h v c"], kernel: Float[Array, "k k c f"], stride: int = 1
) -> Float[Array, "n p q f"]:
    """Convolves as `lax.conv_general_dilated` with (k-1)/2 zeros padded on each side; k is odd."""
    geometry = {"stride": stride, "size": x.shape[1:3], "width": kernel.shape[0]}
    return _contract_p.bind(x, kernel, out="y", **geometry)


def convolve_xla(
    x: Float[Array, "n h v c"], w: Float[Array, "k k c f"], stride: int = 1
) -> Float[Array, "n p q f"]:
    """XLA's own convolution, (k-1)/2 zeros padded on each side; k is odd."""
    pad = w.shape[0] // 2
    return jax.lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        ((pad, pad), (pad, pad)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def _convolve(x: Array, w: Array) -> Array:
    """With stride 1, by the faster of two libraries.

    XLA gives a convolution whose output is larger than its input to Eigen, any other to YNNPACK,
    which takes twice as long on 64 channels of 32×32 pixels. So one row too many is computed.
    """
    pad = w.shape[0] // 2
    y = jax.lax.conv_general_dilated(
        x, w, (1, 1), ((pad, pad + 1), (pad, pad)), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return y[:, :-1]


def _input_gradient(w: Array, y: Array, stride: int, size: tuple[int, int]) -> Array:
    if stride == 1:
        return _convolve(y, w[::-1, ::-1].swapaxes(2, 3))
    x = jax.ShapeDtypeStruct((len(y), *size, w.shape[2]), y.dtype)
    return jax.linear_transpose(lambda x: convolve_xla(x, w, stride), x)(y)[0]


def _kernel_gradient(x: Array, y: Array, stride: int, width: int) -> Array:
    """Summed over parts of the batch, so that the copies made for a part stay in the cache."""
    length = images_at_a_time(len(x), max(a[0].size * a.dtype.itemsize for a in (x, y)))
    parts = tuple(a.reshape(-1, length, *a.shape[1:]) for a in (x, y))

    def add(total, part):
        return total + _part_gradient(part[0], part[1], stride, width), None

    zeros = jnp.zeros((width, width, x.shape[-1], y.shape[-1]), jnp.result_type(x, y))
    return jax.lax.scan(add, zeros, parts)[0]


def _part_gradient(x: Array, y: Array, stride: int, width: int) -> Array:
    """One product over all pixels for each column of the kernel.

    With stride 1 the shifts by rows are made on y and those by columns on x, so that three copies
    of each serve the nine entries of a 3×3 kernel.
    """
    pad, channels, features = width // 2, x.shape[-1], y.shape[-1]
    offsets = range(-pad, pad + 1)
    if stride == 1:
        rows = jnp.stack([_shift(y, 1, -offset) for offset in offsets], 3)
        products = [
            _over_pixels(_shift(x, 2, offset), rows.reshape(*y.shape[:3], -1)) for offset in offsets
        ]
        grid = jnp.stack(products).reshape(width, channels, width, features)
        return grid.transpose(2, 0, 1, 3)
    x = jnp.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    products = []
    for column in range(width):
        taps = [_taps(x, row, column, stride, y.shape) for row in range(width)]
        stacked = jnp.stack(taps, 3).reshape(*y.shape[:3], -1)
        products.append(_over_pixels(stacked, y).reshape(width, channels, features))
    return jnp.stack(products, 1)


def _shift(x: Array, axis: int, offset: int) -> Array:
    """`x[i + offset]` along `axis`, zero outside."""
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (-offset, offset, 0)
    return jax.lax.pad(x, jnp.zeros((), x.dtype), config)


def _taps(x: Array, row: int, column: int, stride: int, shape: tuple[int, ...]) -> Array:
    """What one entry of the kernel sees of the padded x, for all outputs."""
    stop = (row + stride * (shape[1] - 1) + 1, column + stride * (shape[2] - 1) + 1)
    return x[:, row : stop[0] : stride, column : stop[1] : stride]


def _over_pixels(a: Array, b: Array) -> Array:
    """`[n, h, v, c], [n, h, v, f] -> [c, f]`."""
    pixels = a.shape[0] * a.shape[1] * a.shape[2]
    contract = (((0,), (0,)), ((), ()))
    return jax.lax.dot_general(a.reshape(pixels, -1), b.reshape(pixels, -1), contract)


def _contract(a, b, *, out, stride, size, width):
    if (stride, width) == (1, 3) and _suits_winograd(a, b, out, size):
        return _WINOGRAD[out](a, b)
    if out == "y":
        return _convolve(a, b) if stride == 1 else convolve_xla(a, b, stride)
    if out == "x":
        return _input_gradient(a, b, stride, size)
    return _kernel_gradient(a, b, stride, width)


_WINOGRAD = {
    "y": winograd.convolve,
    "x": winograd.input_gradient,
    "w": winograd.kernel_gradient,
}


def _suits_winograd(a: Array, b: Array, out: str, size: tuple[int, int]) -> bool:
    """Whether Winograd's products are faster, and as good: half precision would lose."""
    channels = {"y": b.shape[-2:], "x": a.shape[-2:], "w": (a.shape[-1], b.shape[-1])}[out]
    even = size[0] % 2 == size[1] % 2 == 0
    return even and min(channels) >= WINOGRAD_CHANNELS and jnp.result_type(a, b).itemsize >= 4


def _transpose(position, cotangent, a, b, *, out, **geometry):
    """Cotangent of one operand: the contraction that leaves its role out."""
    roles = [role for role in _ROLES if role != out]
    wanted, other = roles[position], roles[1 - position]
    given = {out: cotangent, other: (b, a)[position]}
    operands = [given[role] for role in _ROLES if role != wanted]
    return _contract_p.bind(*operands, out=wanted, **geometry)


def _batch(operands, axes, **parameters):
    return jax.vmap(functools.partial(_contract, **parameters), axes)(*operands), 0


def _shape(a, b, **parameters):
    result = jax.eval_shape(functools.partial(_contract, **parameters), a, b)
    return jax.core.ShapedArray(result.shape, result.dtype)


_contract_p = Primitive("convolution_contract")
_contract_p.def_impl(jax.jit(_contract, static_argnames=("out", "stride", "size", "width")))
_contract_p.def_abstract_eval(_shape)
ad.defbilinear(_contract_p, functools.partial(_transpose, 0), functools.partial(_transpose, 1))
batching.primitive_batchers[_contract_p] = _batch
mlir.register_lowering(_contract_p, mlir.lower_fun(_contract, multiple_results=False))
