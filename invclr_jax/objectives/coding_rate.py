"""EMP-SSL's loss (arXiv 2304.03977): many views of an image agree, and images spread out."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.objectives.features import Scalar, unit_rows
from invclr_jax.parallel import Axis, axis_size, gather_rows, mean_over_devices


def emp(
    views: Float[Array | np.ndarray, "n v d"],
    eps: Scalar = 0.2,
    similarity: Scalar = 200,
    *,
    axis: Axis = None,
) -> Float[Array, ""]:
    """-similarity·mean cos(u_iv, mean_v u_iv) - mean_v ½ log det(I + d/(N eps)·U_v'U_v).

    u_iv is the unit projection of view v of image i, U_v the `[N, d]` matrix of all images. The
    second term is the total coding rate: the nats that the images take when coded up to eps.

    Args:
      views: raw projections, `[n, v, d]`; computed in float32 at least.
      eps: squared error up to which projections are coded.
      similarity: weight of the views' agreement.
      axis: mapped axis whose devices hold the rest of the batch; gradients flow back to them.

    Returns:
      A value whose mean over devices is the whole batch's loss.
    """
    _check(views, eps)
    units = unit_rows(views)
    centres = unit_rows(jnp.mean(units, axis=1, keepdims=True))
    agreement = jnp.mean(jnp.sum(units * centres, axis=-1))
    weight = jnp.asarray(similarity, units.dtype)
    return -weight * agreement - jnp.mean(_coding_rates(units, eps, axis))


def _coding_rates(units: Float[Array, "n v d"], eps: Scalar, axis: Axis) -> Float[Array, "v"]:
    """½ log det(I + d/(N eps)·U'U) of each view, from the smaller of U'U and the Gram matrix UU'.

    Both have the same eigenvalues but for zeros, whose logarithm of 1 + 0 adds nothing.
    """
    n, dim = units.shape[0] * axis_size(axis), units.shape[2]
    if n < dim:
        rows = gather_rows(units, axis)
        matrices = _products("ivd,jvd->vij", rows, rows) / n
    else:
        matrices = mean_over_devices(_products("ivd,ive->vde", units, units) / len(units), axis)
    scale = jnp.asarray(dim / eps, units.dtype)
    factors = jnp.linalg.cholesky(jnp.eye(min(n, dim), dtype=units.dtype)[None] + scale * matrices)
    return jnp.sum(jnp.log(jnp.diagonal(factors, axis1=1, axis2=2)), axis=1)


def _products(formula: str, left: Array, right: Array) -> Array:
    """Products in full precision: accelerators round the factors by default."""
    return jnp.einsum(formula, left, right, precision=jax.lax.Precision.HIGHEST)


def _check(views, eps: Scalar) -> None:
    if views.ndim != 3 or 0 in views.shape:
        raise ValueError(
            f"views have shape {views.shape}: give projections [n, v, d], v views of each image"
        )
    if not isinstance(eps, jax.core.Tracer) and not eps > 0:
        raise ValueError(f"eps must be positive, got {eps}: EMP-SSL uses 0.2")
