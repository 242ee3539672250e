"""The choice of l2 on rows held out."""

import numpy as np
import pytest

from invclr_jax.data.splits import validation_indices
from invclr_jax.evaluation import probes, selection

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 20)).astype(np.float32)
Y = (X[:, :2] + RNG.normal(size=(100, 2))).astype(np.float32)
LABELS = (X[:, 0] + 0.5 * RNG.normal(size=100) > 0).astype(int)
GRID = (1e-4, 1e-1, 1e-2, 1e2)


@pytest.mark.parametrize("method", ["closed_form", "lbfgs"])
def test_regression(method):
    choice = selection.choose_l2(X, Y, grid=GRID, method=method, seed=3)
    fit, held_out = validation_indices(Y, 0.1, seed=3)
    for l2 in GRID:
        probe = probes.fit_regressor(X[fit], Y[fit], l2=l2)
        expected = np.mean((np.asarray(probe.predict(X[held_out])) - Y[held_out]) ** 2)
        assert choice.losses[l2] == pytest.approx(expected, rel=1e-3)
    assert choice.l2 == choice.probe.l2 == min(choice.losses, key=choice.losses.get)
    whole = probes.fit_regressor(X, Y, l2=choice.l2)
    np.testing.assert_allclose(choice.probe.weights, whole.weights, atol=1e-4)


def test_classification_is_warm_started():
    choice = selection.choose_l2(X, LABELS, num_classes=2, grid=GRID)
    assert isinstance(choice.probe, probes.Classifier)
    assert choice.l2 == min(choice.losses, key=choice.losses.get)
    assert choice.l2 not in (1e-4, 1e2)  # neither overfitting nor ignoring the features
    path = selection.classification_path(X, LABELS, num_classes=2, grid=GRID)
    assert [probe.l2 for probe in path] == [1e2, 1e-1, 1e-2, 1e-4]
    cold = probes.fit_classifier(X, LABELS, num_classes=2, l2=1e-2)
    np.testing.assert_allclose(path[2].weights, cold.weights, atol=1e-4)
    assert path[2].loss == pytest.approx(cold.loss, rel=1e-5)


def test_equal_losses_choose_the_stronger_penalty():
    choice = selection.choose_l2(0 * X, Y, grid=GRID)
    assert choice.l2 == max(GRID)


def test_bad_input_is_a_sentence():
    with pytest.raises(ValueError, match="grid of l2 is empty"):
        selection.choose_l2(X, Y, grid=())
    with pytest.raises(ValueError, match="l2 is -1"):
        selection.choose_l2(X, Y, grid=(-1.0,))
    with pytest.raises(ValueError, match="no method 'newton'"):
        selection.choose_l2(X, Y, method="newton")
    with pytest.raises(ValueError, match="validation fraction 1"):
        selection.choose_l2(X, Y, validation_fraction=1.0)
