"""What tells collapse from learning: spread, rank and agreement of the projections.

With u the unit projections of a batch, ū their mean and C their covariance:

    projection_std        √(mean |u - ū|²): near 1 where images spread out, 0 where all are one;
    effective_rank        tr(C)²/tr(C²), the number of directions that they spread in;
    positive_similarity   mean cos(u, u') of two views of an image.

A high similarity means invariance if the spread stays, and collapse if it goes.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from invclr_jax.objectives.features import unit_rows
from invclr_jax.parallel import Axis, axis_size, gather_rows, mean_over_devices

SMALLEST_STD = 0.03
SMALLEST_RANK = 1.1


def measures(p: Float[Array, "n d"], q: Float[Array, "n d"], axis: Axis = None) -> dict[str, Array]:
    """The three numbers, without gradient; equal on every device.

    Args:
      p: raw projections of the first view, `[n, d]`.
      q: raw projections of the second view, `[n, d]`.
      axis: mapped axis whose devices hold the rest of the batch.
    """
    u, u_prime = (unit_rows(jax.lax.stop_gradient(rows)) for rows in (p, q))
    centred = u - mean_over_devices(u.mean(0, keepdims=True), axis)
    variance = mean_over_devices(jnp.mean(jnp.sum(centred**2, axis=1)), axis)
    squares = _squared_covariance(centred, axis)
    spreads = squares > jnp.finfo(u.dtype).tiny
    rank = jnp.where(spreads, variance**2 / jnp.where(spreads, squares, 1.0), 0.0)
    agreement = mean_over_devices(jnp.mean(jnp.sum(u * u_prime, axis=1)), axis)
    return {
        "projection_std": jnp.sqrt(variance),
        "effective_rank": rank,
        "positive_similarity": agreement,
    }


def _squared_covariance(centred: Array, axis: Axis) -> Array:
    """tr(C²), from the smaller of the covariance and the Gram matrix of the rows."""
    n, dim = len(centred) * axis_size(axis), centred.shape[1]
    if dim <= n:
        covariance = mean_over_devices(_product(centred.T, centred) / len(centred), axis)
        return jnp.sum(covariance**2)
    gram = _product(centred, gather_rows(centred, axis).T) / n
    return mean_over_devices(jnp.sum(gram**2), axis) * axis_size(axis)


def _product(left: Array, right: Array) -> Array:
    return jnp.matmul(left, right, precision=jax.lax.Precision.HIGHEST)


def warning(metrics: Mapping[str, float]) -> str | None:
    """A warning if the projections have collapsed; None if they have not, or were not measured."""
    std, rank = metrics.get("projection_std"), metrics.get("effective_rank")
    if std is None or rank is None or (std >= SMALLEST_STD and rank >= SMALLEST_RANK):
        return None
    return (
        f"the projections have collapsed: standard deviation {std:.2g} (1 at most), effective rank "
        f"{rank:.2g}. Lower the learning rate, warm it up for longer, lower config.penalty.weight "
        "or use a larger batch"
    )
