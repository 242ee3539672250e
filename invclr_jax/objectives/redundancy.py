"""Losses that forbid redundant components: Barlow Twins (arXiv 2103.03230), VICReg (2105.04906).

Both look at the columns of the whole batch. Their means, variances and products are averaged over
devices, so that each device multiplies its own rows only.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.objectives.features import Scalar, promoted
from invclr_jax.parallel import Axis, axis_size, mean_over_devices

Rows = Float[Array | np.ndarray, "n d"]


def barlow_twins(
    a: Rows, b: Rows, off_diagonal: Scalar = 5e-3, *, axis: Axis = None
) -> Float[Array, ""]:
    """Σ_i (c_ii - 1)² + off_diagonal·Σ_{i≠j} c_ij² for the cross-correlation c of two views.

    Args:
      a: raw projections of the first view, `[n, d]`; computed in float32 at least.
      b: raw projections of the second view, `[n, d]`.
      off_diagonal: weight of the components' redundancy, the paper's lambda.
      axis: mapped axis whose devices hold the rest of the batch; gradients flow back to them.

    Returns:
      The whole batch's loss, the same on every device. A constant column has correlation 0.
    """
    a, b = _checked(a, b, axis)
    c = _mean_product(_standardised(a, axis), _standardised(b, axis), axis)
    on = jnp.diagonal(c)
    return jnp.sum((on - 1) ** 2) + off_diagonal * _off_diagonal_squares(c)


def vicreg(
    a: Rows,
    b: Rows,
    invariance: Scalar = 25,
    variance: Scalar = 25,
    covariance: Scalar = 1,
    *,
    axis: Axis = None,
) -> Float[Array, ""]:
    """invariance·mean (a-b)² + variance·(v(a)+v(b))/2 + covariance·(c(a)+c(b)).

    v is the mean over components of relu(1 - √(var + 1e-4)), c the sum of the squared off-diagonal
    entries of the covariance divided by d; variances and covariances are the unbiased ones.

    Args:
      a: raw projections of the first view, `[n, d]`; computed in float32 at least.
      b: raw projections of the second view, `[n, d]`.
      invariance: weight of the distance between the views.
      variance: weight of the hinge that keeps every component's deviation at 1 or above.
      covariance: weight of the components' redundancy.
      axis: mapped axis whose devices hold the rest of the batch; gradients flow back to them.

    Returns:
      A value whose mean over devices is the whole batch's loss.
    """
    a, b = _checked(a, b, axis)
    (v_a, c_a), (v_b, c_b) = _spread(a, axis), _spread(b, axis)
    distance = jnp.mean((a - b) ** 2)
    weights = jnp.stack([jnp.asarray(w, a.dtype) for w in (invariance, variance, covariance)])
    return jnp.dot(weights, jnp.stack([distance, (v_a + v_b) / 2, c_a + c_b]), precision="highest")


def _spread(rows: Array, axis: Axis) -> tuple[Array, Array]:
    """VICReg's variance and covariance terms of one view."""
    total = len(rows) * axis_size(axis)
    centred = _centred(rows, axis)
    matrix = _mean_product(centred, centred, axis) * (total / (total - 1))
    hinge = jnp.maximum(1 - jnp.sqrt(jnp.diagonal(matrix) + 1e-4), 0)
    return jnp.mean(hinge), _off_diagonal_squares(matrix) / rows.shape[1]


def _centred(rows: Array, axis: Axis) -> Array:
    return rows - mean_over_devices(jnp.mean(rows, axis=0, keepdims=True), axis)


def _standardised(rows: Array, axis: Axis) -> Array:
    """Columns with mean 0 and variance 1, as batch norm without affine makes them."""
    rows = _centred(rows, axis)
    variance = mean_over_devices(jnp.mean(rows**2, axis=0, keepdims=True), axis)
    return rows * jax.lax.rsqrt(variance + 1e-5)


def _mean_product(a: Array, b: Array, axis: Axis) -> Float[Array, "d d"]:
    """a'b/N of all devices' rows, in full precision: accelerators round products by default."""
    local = jnp.matmul(a.T, b, precision=jax.lax.Precision.HIGHEST) / len(a)
    return mean_over_devices(local, axis)


def _off_diagonal_squares(matrix: Array) -> Array:
    return jnp.sum((matrix - jnp.diag(jnp.diagonal(matrix))) ** 2)


def _checked(a: Rows, b: Rows, axis: Axis) -> tuple[Array, Array]:
    if a.ndim != 2 or a.shape != b.shape:
        raise ValueError(
            f"projections of shape {a.shape} and {b.shape} cannot be paired: "
            "both must be [n, d] with one row for each image"
        )
    if len(a) * axis_size(axis) < 2:
        raise ValueError(f"{len(a)} row has no variance: use a batch of at least 2 images")
    return promoted(a), promoted(b)
