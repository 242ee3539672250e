"""The inverse of a linear model's Hessian, as if every class had the same curvature.

With row weights w the Hessian of `loss(X W + b) + l2·|W|²` is close, class by class, to the
weighted second moments of (x, 1) plus 2·l2 on W. Eliminating b leaves the weighted covariance.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from invclr_jax import parallel

ROWS = 2048
"""Rows at a time in the covariance: no copy of all features is made."""


class Preconditioner(NamedTuple):
    """Attributes: weighted mean of x, inverse Cholesky factor of its covariance, sum of weights."""

    mean: Float[Array, " f"]
    factor: Float[Array, "f f"]
    weight: Float[Array, ""]

    def __call__(self, gradient: Float[Array, "f1 c"]) -> Float[Array, "f1 c"]:
        """The inverse times a gradient in W and, as its last row, b."""
        bias = gradient[-1:]
        weights = self.factor.T @ (self.factor @ (gradient[:-1] - self.mean[:, None] * bias))
        return jnp.concatenate([weights, bias / self.weight - self.mean[None] @ weights])


def unbuilt(features: Float[Array, "n f"]) -> Preconditioner:
    """A placeholder whose weight is above any other."""
    f, dtype = features.shape[1], features.dtype
    return Preconditioner(
        jnp.zeros(f, dtype), jnp.zeros((f, f), dtype), jnp.full((), jnp.inf, dtype)
    )


def build(
    features: Float[Array, "n f"],
    curvature: Float[Array, " n"],
    l2: Float[Array, ""],
    axis: parallel.Axis = None,
) -> Preconditioner:
    """Factorises `Σ w (x-x̄)(x-x̄)ᵀ + 2·l2`, x̄ the weighted mean.

    Args:
      features: x of every row.
      curvature: w, the mean second derivative in its scores of each row's part of the loss.
      l2: weight of the penalty on W.
      axis: of devices that the rows are divided over.
    """
    weight, moment = parallel.sum_over_devices((curvature.sum(), curvature @ features), axis)
    mean = moment / weight
    matrix = parallel.sum_over_devices(_covariance(features, curvature, mean), axis)
    matrix = matrix + 2 * l2 * jnp.eye(len(mean), dtype=mean.dtype)
    diagonal = jnp.diagonal(matrix)
    dead = diagonal <= 0  # a constant feature, no penalty
    scale = jnp.where(dead, 1, jax.lax.rsqrt(jnp.where(dead, 1, diagonal)))
    correlation = matrix * scale[:, None] * scale[None]
    return Preconditioner(mean, _inverse_factor(correlation) * scale[None], weight)


def _covariance(features: Array, curvature: Array, mean: Array) -> Float[Array, "f f"]:
    """Weighted, centred, a few rows at a time."""
    n = len(features)
    size = min(ROWS, n)
    row = jnp.arange(size)

    def add(i, total):
        start = jnp.minimum(i * size, n - size)
        x = jax.lax.dynamic_slice_in_dim(features, start, size)
        weights = jax.lax.dynamic_slice_in_dim(curvature, start, size)
        weights = jnp.where(start + row >= i * size, weights, 0)  # the last slice overlaps
        centred = (x - mean[None]) * jnp.sqrt(weights)[:, None]
        return total + centred.T @ centred

    zero = jnp.zeros((len(mean), len(mean)), mean.dtype)
    return jax.lax.fori_loop(0, -(-n // size), add, zero)


def _inverse_factor(correlation: Float[Array, "f f"]) -> Float[Array, "f f"]:
    """Inverse Cholesky factor of a matrix of unit diagonal, with as small a ridge as works."""
    identity = jnp.eye(len(correlation), dtype=correlation.dtype)

    def attempt(ridge_and_factor):
        ridge, _ = ridge_and_factor
        return 100 * ridge, jnp.linalg.cholesky(correlation + ridge * identity)

    # A singular matrix is indefinite by rounding, and its factor is NaN.
    _, factor = jax.lax.while_loop(
        lambda ridge_and_factor: jnp.isnan(ridge_and_factor[1]).any() & (ridge_and_factor[0] < 1),
        attempt,
        (10 * jnp.finfo(correlation.dtype).eps * identity[0, 0], jnp.nan * identity),
    )
    return jax.scipy.linalg.solve_triangular(factor, identity, lower=True)
