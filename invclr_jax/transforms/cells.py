"""Interpolation between the four pixels around a point, by gathers: right for accelerators.

`interpolation` says what the three functions compute.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

DOWN, RIGHT = 1, 2
"""Derivatives are numbers: 0 is the value, 1 and 2 the derivatives in the row and in the column, 3
the one in both. There are no others: in a cell the value is a + b·down + c·right + d·down·right."""

Factors = tuple[Float[Array, "n p q 1"], Float[Array, "n p q 1"]]
"""Of the pixel before a position and of the one after it."""


def interpolate(
    x: Float[Array, "n h w c"],
    rows: Float[Array, "n p q"],
    columns: Float[Array, "n p q"],
    *weights: Float[Array, "n p q"],
    orders: Sequence[int],
) -> Float[Array, "n p q c"]:
    """Derivatives of the interpolation, weighted and summed; without `orders` its value."""
    top, down = _cell(rows, x.shape[1])
    left, right = _cell(columns, x.shape[2])
    if 1 in x.shape[1:3]:  # there is no next pixel: let it be the same
        twice = [(0, 0), *((0, int(side == 1)) for side in x.shape[1:3]), (0, 0)]
        x = jnp.pad(x, twice, mode="edge")
    # XLA would gather once more for every derivative.
    above, below = lax.optimization_barrier((_pairs(x, top, left), _pairs(x, top + 1, left)))

    def derivative(order: int) -> Array:
        return _between(above, below, down[order & DOWN], right[order // RIGHT])

    if not orders:
        return derivative(0)
    terms = [w[..., None] * derivative(order) for w, order in zip(weights, orders, strict=True)]
    return sum(terms[1:], terms[0])


def image_gradient(
    y: Float[Array, "n p q c"],
    rows: Float[Array, "n p q"],
    columns: Float[Array, "n p q"],
    *weights: Float[Array, "n p q"],
    orders: Sequence[int],
    pixels: tuple[int, int],
) -> Float[Array, "n h w c"]:
    """The gradient of ⟨interpolate(x, …), y⟩ in x, whose height and width are `pixels`."""
    x = jax.ShapeDtypeStruct((len(y), *pixels, y.shape[3]), y.dtype)
    form = lambda x: interpolate(x, rows, columns, *weights, orders=orders)  # noqa: E731
    return jax.linear_transpose(form, x)(y)[0]


def weight_gradients(
    x: Float[Array, "n h w c"],
    rows: Float[Array, "n p q"],
    columns: Float[Array, "n p q"],
    y: Float[Array, "n p q c"],
    *,
    orders: Sequence[int],
) -> tuple[Float[Array, "n p q"], ...]:
    """The gradients of ⟨interpolate(x, …), y⟩ in the weights."""
    weights = [jax.ShapeDtypeStruct(rows.shape, x.dtype)] * len(orders)
    form = lambda *weights: interpolate(x, rows, columns, *weights, orders=orders)  # noqa: E731
    return jax.linear_transpose(form, *weights)(y)


def _between(above: Array, below: Array, down: Factors, right: Factors) -> Array:
    """Two pairs of pixels, summed with factors for both axes."""
    above, below = (
        right[0] * pair[..., 0, :] + right[1] * pair[..., 1, :] for pair in (above, below)
    )
    return down[0] * above + down[1] * below


def _cell(
    position: Float[Array, "n p q"], length: int
) -> tuple[Int[Array, "n p q"], tuple[Factors, Factors]]:
    """The pixel before a position; factors of it and the next in the value, in the derivative."""
    clipped = jnp.clip(position, 0, length - 1)
    # What is not a number has no place: it is read from 0.
    before = jnp.floor(jnp.where(position > 0, clipped, 0)).astype(int)
    before = jnp.minimum(before, max(length - 2, 0))
    fraction = (clipped - before.astype(position.dtype))[..., None]
    inside = ((position > 0) & (position < length - 1)).astype(position.dtype)[..., None]
    return before, ((1 - fraction, fraction), (-inside, inside))


def _pairs(x: Array, rows: Array, columns: Array) -> Float[Array, "n p q 2 c"]:
    """A pixel and the next one in its row: they lie side by side in memory."""
    n, height, width, channels = x.shape
    picture = jnp.broadcast_to(jnp.arange(n)[:, None, None], rows.shape)
    return lax.gather(
        x.reshape(n, height * width, channels),
        jnp.stack([picture, rows * width + columns], axis=-1),
        lax.GatherDimensionNumbers(
            offset_dims=(3, 4), collapsed_slice_dims=(0,), start_index_map=(0, 1)
        ),
        slice_sizes=(1, 2, channels),
        mode="promise_in_bounds",
    )
