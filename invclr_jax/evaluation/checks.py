"""Sentences for input that no probe can use, said before anything is compiled."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

Values = Array | np.ndarray


def finite_rows(matrix: Values, what: str, *, rows: int | None = None) -> Float[Array, "n f"]:
    """A matrix of finite floats with at least one row.

    Args:
      matrix: `[n, f]`.
      what: its name in the sentence.
      rows: how many it must have, None for any.
    """
    matrix = jnp.asarray(matrix)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"{what} must be a matrix with a row for each sample, got {matrix.shape}")
    if rows is not None and len(matrix) != rows:
        raise ValueError(
            f"{what} must have {rows} rows, one for each feature row, got {len(matrix)}"
        )
    if not jnp.issubdtype(matrix.dtype, jnp.floating):
        matrix = matrix.astype(float)
    finite(matrix, what)
    return matrix


def finite(values: Array, what: str) -> None:
    """Raises if an entry is NaN or infinite; counts only then, as the sum is quicker to see."""
    if not jnp.isfinite(jnp.sum(values)):
        wrong = int(values.size - jnp.isfinite(values).sum())
        if wrong:
            raise ValueError(
                f"{what} hold {wrong} NaN or infinite entries of {values.size}: look at the "
                "encoder that made them, a probe would be meaningless"
            )


def class_labels(labels: Values | None, num_rows: int, num_classes: int) -> Int[Array, " n"]:
    """Integer classes, one a row, below `num_classes`.

    Args:
      labels: `[n]`.
      num_rows: n.
      num_classes: how many classes there are.
    """
    if labels is None:
        raise ValueError("labels are missing: give one class a row, or use a protocol without")
    labels = np.asarray(labels)
    if labels.shape != (num_rows,):
        raise ValueError(f"{num_rows} rows need labels of shape ({num_rows},), got {labels.shape}")
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"labels must be integers, got {labels.dtype}: for targets fit a regressor"
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
