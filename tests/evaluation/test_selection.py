"""The choice of l2 on rows held out."""

import numpy as np
import pytest

from invclr_jax.data import validation_indices
from invclr_jax.evaluation import probes, selection

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 20)).astype(np.float32)
Y = (X[:, :2] + RNG.normal(size=(100, 2))).astype(np.float32)
LABELS = (X[:, 0] + 0.5 * RNG.normal(size=100) > 0).astype(int)
GRID = (1e-4, 1e-1, 1e-2, 1e2)


def test_the_weight_with_the_smallest_loss_on_rows_held_out_is_chosen():
    choice = selection.choose_l2(X, LABELS, num_classes=2, grid=GRID, seed=0)
    fit, held_out = validation_indices(LABELS, 0.1, seed=0)
    for l2 in GRID:
        cold = probes.fit_classifier(X[fit], LABELS[fit], num_classes=2, l2=l2)
        right = np.asarray(cold.log_probabilities(X[held_out]))[np.arange(10), LABELS[held_out]]
        assert choice.losses[l2] == pytest.approx(-right.mean(), rel=1e-3)
    assert choice.l2 == choice.probe.l2 == min(choice.losses, key=choice.losses.get)
    assert choice.l2 not in (1e-4, 1e2)  # neither overfitting nor ignoring the features
    whole = probes.fit_classifier(X, LABELS, num_classes=2, l2=choice.l2)
    np.testing.assert_allclose(choice.probe.weights, whole.weights, atol=1e-4)


def test_equal_losses_choose_the_stronger_penalty():
    assert selection.choose_l2(0 * X, LABELS, num_classes=2, grid=GRID).l2 == max(GRID)


@pytest.mark.parametrize("method", ["closed_form", "lbfgs"])
def test_a_path_of_regressors_is_that_of_single_fits(method):
    path = selection.regression_path(X, Y, grid=GRID, method=method)
    assert [probe.l2 for probe in path] == [1e2, 1e-1, 1e-2, 1e-4]
    for probe in path:
        single = probes.fit_regressor(X, Y, l2=probe.l2)
        np.testing.assert_allclose(probe.weights, single.weights, atol=1e-4)


def test_bad_input_is_a_sentence():
    with pytest.raises(ValueError, match="grid of l2 is empty"):
        selection.choose_l2(X, LABELS, num_classes=2, grid=())
    with pytest.raises(ValueError, match="l2 is -1"):
        selection.choose_l2(X, LABELS, num_classes=2, grid=(-1.0,))
    with pytest.raises(ValueError, match="validation fraction 1"):
        selection.choose_l2(X, LABELS, num_classes=2, validation_fraction=1.0)
