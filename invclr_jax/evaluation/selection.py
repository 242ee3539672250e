"""The weight of the L2 penalty, chosen on held-out rows of the training set."""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Integer

from invclr_jax.data import validation_indices
from invclr_jax.evaluation.checks import Values
from invclr_jax.evaluation.linear_solver import ridge
from invclr_jax.evaluation.metrics import cross_entropy
from invclr_jax.evaluation.probes import (
    Classifier,
    Regressor,
    closed_form,
    fit_classifier,
    fit_regressor,
    regression_data,
)

GRID = tuple(10.0**power for power in range(-8, 2))


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
    """The outcome of a search for l2.

    Attributes:
      l2: the weight with the smallest loss on the held-out rows (the larger of two equals).
      losses: l2 -> cross entropy on the held-out rows.
      probe: fitted with it to all rows.
    """

    l2: float
    losses: dict[float, float]
    probe: Classifier


def choose_l2(
    features: Float[Values, "n f"],
    labels: Integer[Values, " n"],
    *,
    num_classes: int,
    grid: Sequence[float] = GRID,
    validation_fraction: float = 0.1,
    seed: int = 0,
) -> Choice:
    """Chooses a classifier's l2 on held-out rows of the training set and refits to all rows.

    Args:
      features: z of every training sample.
      labels: their classes.
      num_classes: C.
      grid: weights to try; each fit starts from the one of the next larger weight.
      validation_fraction: of the rows, held out while choosing.
      seed: of that split.
    """
    features, labels = jnp.asarray(features), np.asarray(labels)
    fit, held_out = validation_indices(labels, validation_fraction, seed=seed)
    path: list[Classifier] = []
    for l2 in _descending(grid):
        init = path[-1] if path else None
        path.append(
            fit_classifier(features[fit], labels[fit], num_classes=num_classes, l2=l2, init=init)
        )
    losses = {
        probe.l2: float(cross_entropy(probe.scores(features[held_out]), labels[held_out]))
        for probe in path
    }
    best = min(path, key=lambda probe: losses[probe.l2])
    refit = fit_classifier(features, labels, num_classes=num_classes, l2=best.l2, init=best)
    return Choice(best.l2, losses, refit)


def regression_path(
    features: Values, targets: Values, *, grid: Sequence[float], method: str = "closed_form"
) -> list[Regressor]:
    """A regressor for every l2, largest first; the sums over the data are computed once."""
    weights = _descending(grid)
    if method == "closed_form":
        features, targets = regression_data(features, targets)
        known = ridge.moments(features, targets)
        return [closed_form(features, targets, known, l2) for l2 in weights]
    path: list[Regressor] = []
    for l2 in weights:
        init = path[-1] if path else None
        path.append(fit_regressor(features, targets, l2=l2, method=method, init=init))
    return path


def _descending(grid: Sequence[float]) -> list[float]:
    if not len(grid):
        raise ValueError("the grid of l2 is empty: give at least one weight")
    return sorted({float(l2) for l2 in grid}, reverse=True)
