"""Missing canonical correlation: an affine-invariant measure of how much z changes with alpha.

Let a and b be the rows of z and z' minus the mean of all 2K rows, T = (a'a + b'b)/2K their
covariance and C = (a'b + b'a)/2K the covariance between them. The eigenvalues of T^-1 C are the
canonical correlations of the exchangeable pair (z, z'): 1 along a direction that the transformation
leaves alone, 0 along one that it redraws. The penalty is the share of them that is missing,

    W = 1 - tr[(T + eps I)^-1 C]/d,    eps = ridge tr(T)/d.

An invertible linear map of z does not change it (up to the ridge), so shrinking z or adding an
offset gains nothing. A direction without variance counts as correlation 0, so giving up rank gains
nothing either.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.objectives.features import apply_feature
from invclr_jax.parallel import Axis, axis_size, gather_rows


def canonical_penalty(
    z: Float[Array | np.ndarray, "k d"],
    z_prime: Float[Array | np.ndarray, "k d"],
    *,
    ridge: float = 0.01,
    axis: Axis = None,
) -> Float[Array, ""]:
    """W = 1 - tr[(T + eps I)^-1 C]/d: the share of canonical correlation that is missing.

    It costs one Cholesky factor of size min(d, 2K), on every device alike. Rows that are all equal
    have W = 1 and no gradient.

    Args:
      z: this device's representations, `[k, d]`; computed in float32 at least.
      z_prime: representations of the same inputs under other transformations, `[k, d]`.
      ridge: eps as a share of the mean variance of a component of z. 0 is allowed where the rows
        outnumber the components.
      axis: mapped axis whose devices hold the rest of the batch; gradients flow back to them.

    Returns:
      W of the whole batch, the same on every device: 0 where every direction is invariant, about 1
      where none is, at most 2.
    """
    _check(z, z_prime, ridge, len(z) * axis_size(axis))
    both = jnp.concatenate([jnp.asarray(z), jnp.asarray(z_prime)])
    # The mean of all rows subtracted, and scaled to tr(T) = d: eps becomes the ridge itself.
    dim = z.shape[1]
    rows, rows_prime = jnp.split(dim**0.5 * apply_feature(both, "relative", axis=axis), 2)
    rows, rows_prime = gather_rows(rows, axis), gather_rows(rows_prime, axis)
    few = 2 * len(rows) < dim
    return (_by_gram if few else _by_covariance)(rows, rows_prime, ridge)


def stable_ridge(num_pairs: int, dim: int, least: float = 0.01) -> float:
    """The ridge for K pairs of d components: `least`, or (d/2K)² where that is more.

    The d components are whitened by 2K rows. The fewer rows there are, the less T knows, and with
    2K ≤ d it can whiten any rows: W then has no gradient but the ridge's. A stronger ridge costs
    bias and saves more noise; `benchmarks/canonical.py` compares it with random subspaces, running
    moments and shrinkage, from 2K = 8d to d/2.

    Args:
      num_pairs: K, pairs in the batches of all devices.
      dim: d, components of z.
      least: the ridge for large batches.

    Returns:
      The ridge.
    """
    if num_pairs < 1 or dim < 1:
        raise ValueError(f"{num_pairs} pairs of {dim} components: use at least 1 of both")
    return max(least, (dim / (2 * num_pairs)) ** 2)


def _by_covariance(a: Array, b: Array, ridge: float) -> Array:
    """W from the `[d, d]` covariance: tr[(T + eps)^-1 C] is the mean product of whitened rows."""
    both = jnp.concatenate([a, b])
    factor = _factor(_product(both.T, both) / len(both), ridge)
    white = jax.scipy.linalg.solve_triangular(factor, both.T, lower=True)
    white, white_prime = jnp.split(white, 2, axis=1)
    return 1 - jnp.sum(white * white_prime) / a.size


def _by_gram(a: Array, b: Array, ridge: float) -> Array:
    """W from the `[2K, 2K]` Gram matrix G of all rows, which is smaller where 2K < d.

    With X = [a; b]/√2K and S the permutation that swaps z and z', T = X'X and C = X'SX, so
    tr[(T + eps)^-1 C] = tr[S G (G + eps)^-1] = -eps tr[S (G + eps)^-1].
    """
    both = jnp.concatenate([a, b])
    factor = _factor(_product(both, both.T) / len(both), ridge)
    inverse = jax.scipy.linalg.cho_solve((factor, True), jnp.eye(len(both), dtype=both.dtype))
    return 1 + 2 * ridge / a.shape[1] * jnp.trace(inverse[: len(a), len(a) :])


def _factor(matrix: Array, ridge: float) -> Array:
    """The lower Cholesky factor of matrix + ridge I."""
    return jnp.linalg.cholesky(matrix + ridge * jnp.eye(len(matrix), dtype=matrix.dtype))


def _product(left: Array, right: Array) -> Array:
    """A product in full precision: accelerators round the factors by default."""
    return jnp.matmul(left, right, precision=jax.lax.Precision.HIGHEST)


def _check(z, z_prime, ridge: float, pairs: int) -> None:
    if z.ndim != 2 or z.shape != z_prime.shape:
        raise ValueError(
            f"representations of shape {z.shape} and {z_prime.shape} cannot be paired: "
            "both must be [k, d] with one row for each input"
        )
    if not 0 <= ridge < float("inf"):
        raise ValueError(f"ridge is {ridge}: use a finite number of at least 0, such as 0.01")
    if ridge == 0 and 2 * pairs <= z.shape[1]:
        raise ValueError(
            f"{pairs} pairs cannot span {z.shape[1]} components, so T has no inverse: "
            "use a ridge above 0, such as 0.01, or more pairs"
        )
