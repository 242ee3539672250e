"""Large batches in parts: the activations of one part are alive at a time."""

from collections.abc import Callable

import jax
from jaxtyping import PyTree

from invclr_jax import parallel


def map_chunks(
    function: Callable[[PyTree], tuple[PyTree, PyTree]], rows: PyTree, chunks: int
) -> tuple[PyTree, PyTree]:
    """Applies `function` to equal parts of the rows with the activations of one part alive.

    The backward pass recomputes each part, so a contrastive loss of all rows costs the memory of
    one part and its gradient is exact.

    Args:
      function: rows -> (outputs with a leading row axis, values to be averaged over the parts).
      rows: pytree with leading axis n.
      chunks: number of parts; divides n.

    Returns:
      All outputs in order, and the averaged values.
    """
    if chunks == 1:
        return function(rows)
    outputs, values = jax.lax.map(jax.checkpoint(function), parallel.shard_rows(rows, chunks))
    merge = lambda leaf: leaf.reshape(-1, *leaf.shape[2:])  # noqa: E731
    return jax.tree.map(merge, outputs), jax.tree.map(lambda leaf: leaf.mean(0), values)
