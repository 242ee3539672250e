"""How well alpha is read from z: each component with its own l2, on standardised features."""

import numpy as np
import pytest

from invclr_jax.evaluation.alpha import predict_alpha


def alpha_data(seed=0, n=120, d=40):
    """alpha_0 can be read from z up to noise of variance 0.01, alpha_1 cannot."""
    rng = np.random.default_rng(seed)
    alpha = rng.uniform(0, 1, size=(n, 2)) * [2.0, 0.2]
    z = rng.normal(size=(n, d)) * np.logspace(-2, 2, d)
    z[:, 0] = 0.01 * (alpha[:, 0] + 0.1 * rng.normal(size=n))
    return z.astype(np.float32), alpha.astype(np.float32)


def test_predicting_alpha():
    (z, alpha), (test_z, test_alpha) = alpha_data(), alpha_data(1, n=1000)
    found = predict_alpha(z, alpha, test_z, test_alpha)
    constant = ((test_alpha - alpha.mean(0)) ** 2).mean(0)
    np.testing.assert_allclose(found.reference, constant, rtol=1e-5)
    np.testing.assert_allclose(found.reference, [4 / 12, 0.04 / 12], rtol=0.1)
    assert 0.01 < found.mse[0] < 0.02
    # Near the constant predictor although 40 features overfit 120 rows: each component has its l2.
    assert 0.95 < found.mse[1] / found.reference[1] < 1.1
    assert found.l2[0] < found.l2[1]
    free = predict_alpha(z, alpha, test_z, test_alpha, grid=(1e-8,))
    assert free.mse[1] / free.reference[1] > 1.3


def test_predicting_alpha_by_lbfgs_is_the_same():
    (z, alpha), (test_z, test_alpha) = alpha_data(), alpha_data(1, n=1000)
    options = {"grid": (1e-4, 1e-2, 1.0)}
    closed = predict_alpha(z, alpha, test_z, test_alpha, **options)
    iterative = predict_alpha(z, alpha, test_z, test_alpha, method="lbfgs", **options)
    np.testing.assert_allclose(iterative.mse, closed.mse, rtol=1e-4)
    np.testing.assert_array_equal(iterative.l2, closed.l2)


def test_predicting_alpha_standardises_features():
    (z, alpha), (test_z, test_alpha) = alpha_data(), alpha_data(1)
    found = predict_alpha(z, alpha, test_z, test_alpha)
    scale = np.logspace(3, -3, 40).astype(np.float32)
    other = predict_alpha(z * scale + 1, alpha, test_z * scale + 1, test_alpha)
    np.testing.assert_allclose(other.mse, found.mse, rtol=1e-3)
    z[:, 3] = test_z[:, 3] = 4.0  # a constant feature has no scale
    assert np.isfinite(predict_alpha(z, alpha, test_z, test_alpha).mse).all()


@pytest.mark.parametrize("method", ["closed_form", "lbfgs"])
@pytest.mark.parametrize("rows", [1, 4])
def test_predicting_alpha_leaves_out_what_varies_in_a_few_rows(rows, method):
    (z, alpha), (test_z, test_alpha) = alpha_data(n=400), alpha_data(1, n=1000)
    z[:, 5] = test_z[:, 5] = 0
    expected = predict_alpha(z, alpha, test_z, test_alpha, method=method)
    # A unit that hardly ever fires, and once in the test set much more strongly.
    z[:rows, 5], test_z[7, 5] = 1e-4, 3.0
    found = predict_alpha(z, alpha, test_z, test_alpha, method=method)
    np.testing.assert_allclose(found.mse, expected.mse, rtol=1e-4)


def test_predicting_alpha_reads_what_varies_in_a_tenth_of_the_rows():
    (z, alpha), (test_z, test_alpha) = alpha_data(n=400), alpha_data(1, n=1000)
    for features, targets in ((z, alpha), (test_z, test_alpha)):
        features[:] = 0
        features[::10, 5] = 1e-4
        targets[::10] += 1
    found = predict_alpha(z, alpha, test_z, test_alpha)
    assert found.mse[1] < 0.1 * found.reference[1]


@pytest.mark.usefixtures("no_shape_checks")
def test_bad_input_is_a_sentence():
    z, alpha = alpha_data(n=20)
    with pytest.raises(ValueError, match="alpha must have 20 rows"):
        predict_alpha(z, alpha[:-1], z, alpha)
    with pytest.raises(ValueError, match="grid of l2 is empty"):
        predict_alpha(z, alpha, z, alpha, grid=())
    with pytest.raises(ValueError, match="no method 'newton'"):
        predict_alpha(z, alpha, z, alpha, method="newton")
