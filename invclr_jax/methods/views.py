"""Several views of every image.

Each of the first two views has a batch of its own; the others, which share a transformation and a
size, are one batch in which the views of an image stand side by side. Batch norm therefore sees
three batches at most, whatever the number of views.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jaxtyping import Array, Float

Compare = Callable[[Array, Array], Array]
"""A loss of two views, `[n, d]` each."""

Batches = tuple[Float[Array, "_ _"], ...]
"""Vectors of the first view, of the second, and of all others, `[n * (v - 2), d]`, if any."""


class Draws(NamedTuple):
    """The random numbers of a step, one row per image: transformations and the penalty's.

    Attributes:
      first: alpha and beta of the first view.
      second: of the second.
      noise: the penalty's; None without one.
      others: of the third view and further, `[n, v - 2, ...]`; None for two views.
    """

    first: Any
    second: Any
    noise: Any
    others: Any = None


def separate(batches: Batches) -> tuple[Float[Array, "n d"], ...]:
    """One array for each view."""
    first, second, *rest = batches
    if not rest:
        return first, second
    others = rest[0].reshape(len(first), -1, first.shape[1])
    return (first, second, *(others[:, i] for i in range(others.shape[1])))


def mean_over_pairs(loss: Compare, views: Sequence[Array]) -> Float[Array, ""]:
    """The mean of a loss over pairs of views; one of each pair is the first or the second view."""
    pairs = [(i, j) for i in (0, 1) for j in range(i + 1, len(views))]
    return _mean([loss(views[i], views[j]) for i, j in pairs])


def mean_over_directions(
    loss: Compare, predictions: Sequence[Array], targets: Sequence[Array]
) -> Float[Array, ""]:
    """The mean of a loss over (prediction, target) of different views.

    Args:
      loss: of a prediction and a target.
      predictions: of every view.
      targets: of the first views, two of them as a rule.
    """
    return _mean(
        [
            loss(prediction, target)
            for i, prediction in enumerate(predictions)
            for j, target in enumerate(targets)
            if i != j
        ]
    )


def _mean(losses: Sequence[Array]) -> Array:
    total = losses[0]
    for loss in losses[1:]:
        total = total + loss
    return total / len(losses)
