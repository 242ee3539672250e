"""The weight of the L2 penalty, chosen on rows held out of the training set."""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from invclr_jax.data.splits import validation_indices
from invclr_jax.evaluation import ridge
from invclr_jax.evaluation.checks import Values
from invclr_jax.evaluation.metrics import cross_entropy, squared_error
from invclr_jax.evaluation.probes import (
    Classifier,
    Probe,
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
      l2: the weight with the smallest loss on the rows held out (the larger of two equals).
      losses: l2 -> cross entropy, or mean squared error, on the rows held out.
      probe: fitted with it to all rows.
    """

    l2: float
    losses: dict[float, float]
    probe: Probe


def choose_l2(
    features: Float[Values, "n f"],
    targets: Values,
    *,
    num_classes: int | None = None,
    grid: Sequence[float] = GRID,
    validation_fraction: float = 0.1,
    seed: int = 0,
    method: str = "closed_form",
) -> Choice:
    """Chooses l2 on held-out rows of the training set and fits all of it.

    Args:
      features: z of every training sample.
      targets: classes `[n]` where `num_classes` is given, else numbers `[n, t]`.
      num_classes: C for a classifier, None for a regressor.
      grid: weights to try; each fit starts from the one of the next larger weight.
      validation_fraction: of the rows, held out while choosing.
      seed: of that split.
      method: of the regressor, `closed_form` or `lbfgs`.
    """
    features, targets = jnp.asarray(features), np.asarray(targets)
    fit, held_out = validation_indices(targets, validation_fraction, seed=seed)
    train, validation = features[fit], features[held_out]
    path: Sequence[Probe]
    if num_classes is None:
        path = regression_path(train, targets[fit], grid=grid, method=method)
    else:
        path = classification_path(train, targets[fit], num_classes=num_classes, grid=grid)

    def loss(probe: Probe) -> float:
        measure = squared_error if num_classes is None else cross_entropy
        return float(jnp.mean(measure(probe.scores(validation), targets[held_out])))

    losses = {probe.l2: loss(probe) for probe in path}
    best = min(path, key=lambda probe: losses[probe.l2])
    refit: Probe
    if num_classes is None:
        refit = fit_regressor(features, targets, l2=best.l2, method=method, init=best)
    else:
        refit = fit_classifier(features, targets, num_classes=num_classes, l2=best.l2, init=best)
    return Choice(best.l2, losses, refit)


def classification_path(
    features: Values, labels: Values, *, num_classes: int, grid: Sequence[float]
) -> list[Classifier]:
    """A classifier for every l2, largest first, each started from the one before."""
    path: list[Classifier] = []
    for l2 in _descending(grid):
        init = path[-1] if path else None
        path.append(fit_classifier(features, labels, num_classes=num_classes, l2=l2, init=init))
    return path


def regression_path(
    features: Values, targets: Values, *, grid: Sequence[float], method: str = "closed_form"
) -> list[Regressor]:
    """A regressor for every l2, largest first; the sums over the data are made once."""
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
