"""The loss of methods without negatives: BYOL (arXiv 2006.07733) and SimSiam (arXiv 2011.10566)."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.objectives.features import unit_rows


def negative_cosine(
    p: Float[Array | np.ndarray, "n d"], z: Float[Array | np.ndarray, "n d"]
) -> Float[Array, ""]:
    """-mean_i cos(p_i, z_i), with no gradient in z.

    Rows are compared with their partners alone, so the mean of it over devices is the whole
    batch's loss.

    Args:
      p: raw predictions from one view, `[n, d]`; computed in float32 at least.
      z: raw targets from another view, `[n, d]`; gradients stop here.

    Returns:
      A number from -1 (all rows agree) to 1. A zero row counts as 0 and has no gradient.
    """
    if p.ndim != 2 or p.shape != z.shape:
        raise ValueError(
            f"predictions of shape {p.shape} and targets of shape {z.shape} cannot be paired: "
            "both must be [n, d] with one row for each image"
        )
    targets = jax.lax.stop_gradient(unit_rows(z))
    return -jnp.mean(jnp.sum(unit_rows(p) * targets, axis=-1))
