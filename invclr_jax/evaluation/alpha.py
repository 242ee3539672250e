"""What z reveals about alpha: how well a linear model reads the transformation from it."""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.data import validation_indices
from invclr_jax.evaluation import checks
from invclr_jax.evaluation.checks import Values
from invclr_jax.evaluation.metrics import squared_error
from invclr_jax.evaluation.probes import Regressor
from invclr_jax.evaluation.selection import GRID, regression_path
from invclr_jax.evaluation.standardise import standardised


@dataclasses.dataclass(frozen=True, eq=False)
class AlphaPrediction:
    """How well a linear model reads alpha from z.

    Attributes:
      mse: test error of each component.
      reference: test error of the constant predictor, the mean of the training alphas.
      l2: weight chosen for each component on a validation split.
      predictions: of the test rows.
    """

    mse: Float[np.ndarray, " a"]
    reference: Float[np.ndarray, " a"]
    l2: Float[np.ndarray, " a"]
    predictions: Float[np.ndarray, "t a"]


def predict_alpha(
    features: Float[Values, "n d"],
    alpha: Float[Values, "n a"],
    test_features: Float[Values, "t d"],
    test_alpha: Float[Values, "t a"],
    *,
    grid: Sequence[float] = GRID,
    validation_fraction: float = 0.1,
    seed: int = 0,
    method: str = "closed_form",
) -> AlphaPrediction:
    """Ridge regression of alpha on standardised features: a higher error means more invariance.

    The objective is a sum over components, so each takes its own l2 from one path of fits. Features
    that vary in only a few rows are left out, see `standardised`.

    Args:
      features: z of training samples, one random transformation each.
      alpha: of that transformation.
      test_features: z of test samples.
      test_alpha: theirs.
      grid: weights to choose from.
      validation_fraction: of the training rows, held out for choosing.
      seed: of that split.
      method: `closed_form` or `lbfgs`.
    """
    train = jnp.asarray(checks.finite_rows(features, "features"))
    alpha = jnp.asarray(checks.finite_rows(alpha, "alpha", rows=len(train)))
    test = jnp.asarray(checks.finite_rows(test_features, "test features"))
    test_alpha = jnp.asarray(checks.finite_rows(test_alpha, "test alpha", rows=len(test)))
    fit, held_out = validation_indices(np.asarray(alpha), validation_fraction, seed=seed)
    train, test = standardised(train, test, len(held_out))
    trial = regression_path(train[fit], alpha[fit], grid=grid, method=method)
    best = np.argmin(_errors(trial, train[held_out], alpha[held_out]), axis=0)

    final = regression_path(train, alpha, grid=grid, method=method)
    constant = jnp.broadcast_to(alpha.mean(0, keepdims=True), test_alpha.shape)
    columns = np.arange(len(best))
    every = np.stack([probe.predict(test) for probe in final])
    return AlphaPrediction(
        mse=_errors(final, test, test_alpha)[best, columns],
        reference=np.asarray(squared_error(constant, test_alpha)),
        l2=np.array([probe.l2 for probe in final])[best],
        predictions=every[best, :, columns].T,
    )


def _errors(path: Sequence[Regressor], features: Array, targets: Array) -> np.ndarray:
    """Squared error of each probe in each output."""
    return np.stack([squared_error(probe.predict(features), targets) for probe in path])
