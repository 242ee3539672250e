"""3×3 convolutions with 16 products where the definition has 36 (Winograd, 1980; Lavin, 2016).

Two neighbouring outputs of a three-tap filter g on inputs d need four products,

    y = Aᵀ[(G g) ⊙ (Bᵀ d)],

and the same in both directions of a picture turns each 2×2 block of outputs into 4×4 products over
the channels: matrix products. Rows 0 and 3 of Bᵀ, G and A belong together (`outer`), rows 1 and 2
do (`inner`); kept apart, every transformation is a sum of slices without a case for each row:

    outer Bᵀd = (d₀ - d₂, d₁ - d₃)       outer Gg = (g₀, g₂)                outer Ay = (y₀, -y₁)
    inner Bᵀd = (d₂ + d₁, d₂ - d₁)       inner Gg = (g₀ + g₂ ± g₁)/2        inner Ay = y₀ ± y₁

Rounding errors are about twice those of the sum itself.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.models.blocking import images_at_a_time

PART = 2**21
"""Bytes of images to transform and multiply at a time."""

Pair = tuple[Array, Array]


def convolve(
    x: Float[Array, "n h v c"], kernel: Float[Array, "3 3 c f"]
) -> Float[Array, "n h v f"]:
    """Convolves with one zero padded on each side; height and width are even."""
    return _apply(x, kernel, 2)


def input_gradient(
    kernel: Float[Array, "3 3 c f"], y: Float[Array, "n h v f"]
) -> Float[Array, "n h v c"]:
    """Gradient of ⟨convolve(x, kernel), y⟩ in x: a convolution of y."""
    return _apply(y, kernel[::-1, ::-1], 3)


def _apply(x: Array, kernel: Array, axis: int) -> Array:
    """Convolves; `axis` of the kernel is that of the input channels."""
    features = kernel.shape[5 - axis]
    filters = [f.reshape(4, *kernel.shape[2:]) for f in _each_way(kernel, _filter)]
    contract = (((2,), (axis - 1,)), ((0,), (0,)))

    def one(part):
        tiles = zip(_tiles(part), filters, strict=True)
        products = [jax.lax.dot_general(tile, f, contract) for tile, f in tiles]
        shape = (2, 2, len(part), part.shape[1] // 2, part.shape[2] // 2, features)
        grid = [p.reshape(shape) for p in products]
        rows = _output(grid[0], grid[1], 1), _output(grid[2], grid[3], 1)
        return _merge(_output(*rows, 0))

    return jax.lax.map(one, *_parts(x)).reshape(*x.shape[:3], features)


def kernel_gradient(
    x: Float[Array, "n h v c"], y: Float[Array, "n h v f"]
) -> Float[Array, "3 3 c f"]:
    """Gradient of ⟨convolve(x, kernel), y⟩ in the kernel."""
    shape = (4, x.shape[-1], y.shape[-1])
    over_tiles = (((1,), (1,)), ((0,), (0,)))

    def add(total, part):
        pairs = zip(total, _tiles(part[0]), _cotangents(part[1]), strict=True)
        return [t + jax.lax.dot_general(a, b, over_tiles) for t, a, b in pairs], None

    zeros = [jnp.zeros(shape, jnp.result_type(x, y))] * 4
    found = jax.lax.scan(add, zeros, _parts(x, y))[0]
    grid = [f.reshape(2, 2, *shape[1:]) for f in found]
    rows = _kernel(grid[0], grid[1], 1), _kernel(grid[2], grid[3], 1)
    return _kernel(*rows, 0)


def _parts(*images: Array) -> tuple[Array, ...]:
    """The same equal parts of all, so large that threads have work, and little leaves the cache."""
    each = max(x[0].size * x.dtype.itemsize for x in images)
    length = images_at_a_time(len(images[0]), each, least=PART)
    return tuple(x.reshape(-1, length, *x.shape[1:]) for x in images)


def _split(x: Array) -> Array:
    """Even and odd rows and columns apart: `[n, 2p, 2q, c] -> [2, 2, n, p, q, c]`."""
    x = x.reshape(len(x), x.shape[1] // 2, 2, x.shape[2] // 2, 2, x.shape[3])
    return x.transpose(2, 4, 0, 1, 3, 5)


def _merge(y: Array) -> Array:
    """The inverse of `_split`."""
    _, _, n, p, q, c = y.shape
    return y.transpose(2, 3, 0, 4, 1, 5).reshape(n, 2 * p, 2 * q, c)


def _tiles(x: Array) -> list[Array]:
    """Bᵀ d B of all tiles, four arrays `[4, tiles, c]`."""
    x = _split(jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))))
    return [tile.reshape(4, -1, x.shape[-1]) for tile in _each_way(x, _input)]


def _cotangents(y: Array) -> list[Array]:
    """A y Aᵀ of all tiles, four arrays `[4, tiles, f]`."""
    return [block.reshape(4, -1, y.shape[-1]) for block in _each_way(_split(y), _cotangent)]


def _each_way(x: Array, transformation: Callable[[Array, int], Pair]) -> list[Array]:
    """The transformation along rows and along columns: outer-outer, outer-inner, and so on."""
    return [part for row in transformation(x, 0) for part in transformation(row, 1)]


def _signs(like: Array, axis: int) -> Array:
    """(1, -1) along `axis`."""
    shape = [1] * like.ndim
    shape[axis] = 2
    return jnp.asarray(np.reshape([1, -1], shape), like.dtype)


def _at(x: Array, axis: int, index: int) -> Array:
    return jax.lax.slice_in_dim(x, index, index + 1, axis=axis)


def _input(x: Array, axis: int) -> Pair:
    """Bᵀ d; `axis` parts even from odd, and pairs of them follow each other three axes later."""
    along = axis + 3
    count = x.shape[along]
    now = jax.lax.slice_in_dim(x, 0, count - 1, axis=along)
    after = jax.lax.slice_in_dim(x, 1, count, axis=along)
    return now - after, _at(after, axis, 0) + _signs(x, axis) * _at(now, axis, 1)


def _filter(g: Array, axis: int) -> Pair:
    """G g."""
    first, middle, last = (_at(g, axis, index) for index in range(3))
    ends = jnp.concatenate([first, last], axis)
    return ends, (first + last) / 2 + _signs(ends, axis) * (middle / 2)


def _cotangent(y: Array, axis: int) -> Pair:
    """A y."""
    signs = _signs(y, axis)
    return signs * y, _at(y, axis, 0) + signs * _at(y, axis, 1)


def _output(outer: Array, inner: Array, axis: int) -> Array:
    """Aᵀ m."""
    signs = _signs(outer, axis)
    return signs * outer + (_at(inner, axis, 0) + signs * _at(inner, axis, 1))


def _kernel(outer: Array, inner: Array, axis: int) -> Array:
    """Gᵀ m."""
    half = (_at(inner, axis, 0) + _at(inner, axis, 1)) / 2
    middle = (_at(inner, axis, 0) - _at(inner, axis, 1)) / 2
    return jnp.concatenate([_at(outer, axis, 0) + half, middle, half + _at(outer, axis, 1)], axis)
