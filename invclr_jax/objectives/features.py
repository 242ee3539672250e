"""The feature h of a representation z whose conditional variance the penalty measures (Eq. 5)."""

from typing import Literal, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.parallel import Axis, mean_over_devices

Feature = Literal["unit", "centred", "relative"]
FEATURES: tuple[str, ...] = get_args(Feature)

Scalar = Float[Array | np.ndarray, ""] | float | int
"""A number, traced or not."""


def unit_rows(rows: Float[Array | np.ndarray, "*n d"]) -> Float[Array, "*n d"]:
    """Divides every row by its length; a zero row stays zero, and so does its gradient.

    Args:
      rows: `[..., d]`; computed in float32 at least.

    Returns:
      Rows of length 1, `[..., d]`.
    """
    rows = promoted(rows)
    return _divide(rows, jnp.sum(rows**2, axis=-1, keepdims=True))


def apply_feature(
    z: Float[Array | np.ndarray, "k d"], feature: str, *, axis: Axis = None
) -> Float[Array, "k d"]:
    """The feature h of a batch of representations.

    `unit` is z/|z|, the paper's. `centred` is (z - m)/|z - m| with the batch mean m. `relative` is
    (z - m)/s, where s² is the batch's total variance, the mean of |z - m|²: its conditional
    variance is V_cond/V_total of z itself. Both batch statistics are functions of z and are
    differentiated as such, like those of batch norm in train mode. This is why `relative` subtracts
    m, which neither V_cond nor V_total can see: otherwise the derivative through s would be
    multiplied by whatever offset all z have in common.

    Args:
      z: this device's representations, `[k, d]`.
      feature: `unit`, `centred` or `relative`.
      axis: mapped axis whose devices hold the rest of the batch.

    Returns:
      h, `[k, d]`. Where the divisor is zero, h and its derivative are zero.
    """
    z = promoted(z)
    if feature == "unit":
        return unit_rows(z)
    centred = z - mean_over_devices(jnp.mean(z, axis=0, keepdims=True), axis)
    squares = jnp.sum(centred**2, axis=-1, keepdims=True)
    if feature == "centred":
        return _divide(centred, squares)
    return _divide(centred, mean_over_devices(jnp.mean(squares, axis=0, keepdims=True), axis))


def _divide(rows: Array, squared_length: Array) -> Array:
    """`rows / sqrt(squared_length)`, and 0 with derivative 0 where the length vanishes.

    The threshold (a length of 3e-10 in float32) leaves room for the third power of 1/length, which
    second derivatives contain. The inner `where` keeps their infinities out of the outer one.
    """
    vanishes = squared_length < jnp.finfo(rows.dtype).tiny ** 0.5
    length = jnp.sqrt(jnp.where(vanishes, 1.0, squared_length))
    return jnp.where(vanishes, 0.0, rows / length)


def promoted(rows: Array | np.ndarray) -> Array:
    """The same numbers in float32 at least."""
    rows = jnp.asarray(rows)
    return rows.astype(jnp.promote_types(rows.dtype, jnp.float32))
