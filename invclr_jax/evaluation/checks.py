"""Errors for input that no probe can use, raised before anything is compiled."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

Values = Array | np.ndarray

ROWS = 8192
"""Rows of an array on the host that are checked together."""


def finite_rows(matrix: Values, what: str, *, rows: int | None = None) -> Float[Values, "n f"]:
    """A matrix of finite floats with at least one row; it stays where it is, on host or device.

    Args:
      matrix: `[n, f]`.
      what: its name in the error message.
      rows: how many it must have, None for any.
    """
    matrix = matrix if isinstance(matrix, jax.Array) else np.asarray(matrix)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"{what} must be a matrix with one row per sample, got {matrix.shape}")
    if rows is not None and len(matrix) != rows:
        raise ValueError(f"{what} must have {rows} rows, one per feature row, got {len(matrix)}")
    kind = matrix.dtype if jnp.issubdtype(matrix.dtype, jnp.floating) else np.dtype(float)
    matrix = matrix.astype(jax.dtypes.canonicalize_dtype(kind), copy=False)
    finite(matrix, what)
    return matrix


def finite(values: Values, what: str) -> None:
    """Raises if an entry is NaN or infinite."""
    wrong = _wrong_on_host(values) if isinstance(values, np.ndarray) else _wrong(values)
    if wrong:
        raise ValueError(
            f"{what} hold {wrong} NaN or infinite entries of {values.size}: check the "
            "encoder that made them; a probe would be meaningless"
        )


def _wrong(values: Array) -> int:
    """Counts only if the sum, which is quicker to check, is not finite."""
    if jnp.isfinite(jnp.sum(values)):
        return 0
    return int(values.size - jnp.isfinite(values).sum())


def _wrong_on_host(values: np.ndarray) -> int:
    """A few rows at a time, because they may not all fit in memory."""
    starts = range(0, len(values), ROWS)
    return sum(int(np.sum(~np.isfinite(values[start : start + ROWS]))) for start in starts)


def class_labels(labels: Values | None, num_rows: int, num_classes: int) -> Int[Array, " n"]:
    """Integer classes, one per row, below `num_classes`.

    Args:
      labels: `[n]`.
      num_rows: n.
      num_classes: how many classes there are.
    """
    if labels is None:
        raise ValueError("labels are missing: give one per row, or use a protocol without labels")
    labels = np.asarray(labels)
    if labels.shape != (num_rows,):
        raise ValueError(f"{num_rows} rows need labels of shape ({num_rows},), got {labels.shape}")
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"labels must be integers, got {labels.dtype}: for numbers, fit a regressor"
        )
    if num_classes < 2:
        raise ValueError(f"num_classes is {num_classes}: a classifier needs at least 2")
    if labels.min() < 0 or labels.max() >= num_classes:
        raise ValueError(
            f"labels run from {labels.min()} to {labels.max()}, outside 0..{num_classes - 1}: "
            "number them from 0 or raise num_classes"
        )
    return jnp.asarray(labels.astype(np.int32))


def at_least_one(number: int, what: str) -> None:
    """Raises for counts such as M = 0."""
    if number < 1:
        raise ValueError(f"{what} is {number}: use 1 or more")
