"""Invariance measures against golden numbers and their defining properties."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard

from invclr_jax.evaluation import invariance
from tests.reference import relative_error

LIMIT = {"float64": 1e-10, "float32": 1e-5}


def test_conditional_and_total_variance_are_golden(golden, precision):
    stored = golden("variance")
    limit = LIMIT[precision.name]
    f, e = stored["F"], stored["e"]
    found = invariance.variances(f)
    assert found.conditional.dtype == precision
    assert relative_error(found.conditional, stored["v_trace"]) < limit
    assert relative_error(found.per_image, stored["v_per_image_trace"]) < limit
    assert relative_error(found.total, stored["total_ddof1"]) < limit
    assert relative_error(found.ratio, stored["ratio_v_trace_over_total"]) < limit

    along = invariance.conditional_variance_along(f, e)
    assert relative_error(along, stored["v_per_image_e"]) < limit
    assert relative_error(along.mean(), stored["v_e"]) < limit

    # The biased forms are multiples of ours, and add up.
    b, p, _ = f.shape
    total = found.total * (b * p - 1) / (b * p)
    within = found.conditional * (p - 1) / p
    between = invariance.variance_across_images(f, p) * (b - 1) / b
    assert relative_error(total, stored["total_ddof0"]) < limit
    assert relative_error(1 - total, stored["mean_norm_squared"]) < limit
    assert relative_error(within, stored["within_ddof0"]) < limit
    assert relative_error(between, stored["between_ddof0"]) < limit


def test_the_published_figure_is_golden(golden, precision):
    stored = golden("variance")
    limit = LIMIT[precision.name]
    f, e = stored["F"], stored["e"]
    b, p, _ = f.shape
    index = np.broadcast_to(np.arange(b)[:, None, None], (b, p, 1)).astype(precision)
    mixed = invariance.mixed_axes(index)[..., 0]
    np.testing.assert_array_equal(mixed, stored["mixed_axes_image_index"])
    columns = invariance.conditional_variance_along(invariance.mixed_axes(f), e)
    assert relative_error(columns, stored["mixed_axes_per_column"]) < limit
    assert relative_error(invariance.as_published(f, e), stored["mixed_axes_e"]) < limit
    assert relative_error(invariance.as_published(f), stored["mixed_axes_trace"]) < limit


def test_variance_of_averages_is_golden(golden, precision):
    stored = golden("variance")
    limit = LIMIT[precision.name]
    f, e = stored["F"], stored["e"]
    for i, m in enumerate(stored["M"].tolist()):
        for suffix, direction in (("trace", None), ("e", e)):
            plugin, grouped = invariance.averaged_variance(f, m, e=direction)
            assert relative_error(plugin, stored[f"fa_plugin_{suffix}"][i]) < limit
            expected = stored[f"fa_grouped_{suffix}"][i]
            if np.isnan(expected):
                assert np.isnan(grouped)
            else:
                assert relative_error(grouped, expected) < limit
        across = invariance.variance_across_images(f, m)
        assert relative_error(across, stored["fa_across_images_trace"][i]) < limit
        if f"fa_features_M{m}" in stored:
            assert relative_error(f[:, :m].mean(1), stored[f"fa_features_M{m}"]) < limit


def random_features(seed, b=6, p=4, d=8):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(b, 1, d)) + 0.3 * rng.normal(size=(b, p, d))


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 1000), scale=st.floats(0.1, 10))
def test_properties(seed, scale):
    f = random_features(seed)
    found = invariance.variances(f)
    # Orthogonal sign vectors average to the trace.
    signs = hadamard(8).astype(float)
    along = [invariance.conditional_variance_along(f, np.tile(e, (6, 1))).mean() for e in signs]
    assert np.mean(along) == pytest.approx(float(found.conditional), rel=1e-4)
    # Turning, shifting and scaling all features together leaves the ratio alone.
    turned = scale * f @ np.linalg.qr(np.random.default_rng(seed).normal(size=(8, 8)))[0] + 1
    assert invariance.variances(turned).ratio == pytest.approx(float(found.ratio), rel=1e-3)
    # The order of images and of their alphas does not matter.
    other = f[::-1, ::-1].copy()
    np.testing.assert_allclose(invariance.variances(other).per_image[::-1], found.per_image, 1e-4)


def test_extremes():
    f = random_features(0)
    invariant = np.broadcast_to(f[:, :1], f.shape).copy()
    assert invariance.variances(invariant).ratio < 1e-6
    mixed = np.random.default_rng(0).normal(size=(300, 50, 4))
    assert invariance.variances(mixed).ratio == pytest.approx(1, rel=0.02)


def test_unit_features():
    f = np.concatenate([random_features(0), np.zeros((1, 4, 8))])
    lengths = jnp.linalg.norm(invariance.unit(f), axis=-1)
    np.testing.assert_allclose(lengths[:-1], 1, rtol=1e-6)
    np.testing.assert_array_equal(lengths[-1], 0)


def test_variances_can_be_transformed():
    f = jnp.asarray(random_features(0), jnp.float32)
    expected = invariance.variances(f).conditional
    assert jax.jit(invariance.variances)(f).conditional == pytest.approx(float(expected))
    gradient = jax.grad(lambda f: invariance.variances(f).conditional)(f)
    assert jnp.vdot(gradient, f) == pytest.approx(2 * float(expected), rel=1e-5)


def test_effective_rank():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 10)) + 7
    shares = np.linalg.svd(z - z.mean(0), compute_uv=False) ** 2
    shares = shares[:3] / shares.sum()
    expected = np.exp(-(shares * np.log(shares)).sum())
    assert invariance.effective_rank(z) == pytest.approx(expected, rel=1e-4)
    assert 2 < expected < 3
    line = np.arange(20.0)[:, None] * np.ones((1, 4))
    assert invariance.effective_rank(line) == pytest.approx(1, abs=1e-3)
    square = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    assert invariance.effective_rank(square) == pytest.approx(2)
    assert invariance.effective_rank(np.ones((5, 3))) == 1


def alpha_data(seed=0, n=120, d=40):
    """alpha_0 can be read from z up to noise of variance 0.01, alpha_1 cannot."""
    rng = np.random.default_rng(seed)
    alpha = rng.uniform(0, 1, size=(n, 2)) * [2.0, 0.2]
    z = rng.normal(size=(n, d)) * np.logspace(-2, 2, d)
    z[:, 0] = 0.01 * (alpha[:, 0] + 0.1 * rng.normal(size=n))
    return z.astype(np.float32), alpha.astype(np.float32)


def test_predicting_alpha():
    (z, alpha), (test_z, test_alpha) = alpha_data(), alpha_data(1, n=1000)
    found = invariance.predict_alpha(z, alpha, test_z, test_alpha)
    constant = ((test_alpha - alpha.mean(0)) ** 2).mean(0)
    np.testing.assert_allclose(found.reference, constant, rtol=1e-5)
    np.testing.assert_allclose(found.reference, [4 / 12, 0.04 / 12], rtol=0.1)
    assert 0.01 < found.mse[0] < 0.02
    # Near the constant predictor although 40 features overfit 120 rows: each component has its l2.
    assert 0.95 < found.mse[1] / found.reference[1] < 1.1
    assert found.l2[0] < found.l2[1]
    free = invariance.predict_alpha(z, alpha, test_z, test_alpha, grid=(1e-8,))
    assert free.mse[1] / free.reference[1] > 1.3


def test_predicting_alpha_by_lbfgs_is_the_same():
    (z, alpha), (test_z, test_alpha) = alpha_data(), alpha_data(1, n=1000)
    options = {"grid": (1e-4, 1e-2, 1.0)}
    closed = invariance.predict_alpha(z, alpha, test_z, test_alpha, **options)
    iterative = invariance.predict_alpha(z, alpha, test_z, test_alpha, method="lbfgs", **options)
    np.testing.assert_allclose(iterative.mse, closed.mse, rtol=1e-4)
    np.testing.assert_array_equal(iterative.l2, closed.l2)


def test_predicting_alpha_standardises_features():
    (z, alpha), (test_z, test_alpha) = alpha_data(), alpha_data(1)
    found = invariance.predict_alpha(z, alpha, test_z, test_alpha)
    scale = np.logspace(3, -3, 40).astype(np.float32)
    other = invariance.predict_alpha(z * scale + 1, alpha, test_z * scale + 1, test_alpha)
    np.testing.assert_allclose(other.mse, found.mse, rtol=1e-3)
    z[:, 3] = test_z[:, 3] = 4.0  # a constant feature has no scale
    assert np.isfinite(invariance.predict_alpha(z, alpha, test_z, test_alpha).mse).all()


@pytest.mark.parametrize("method", ["closed_form", "lbfgs"])
@pytest.mark.parametrize("rows", [1, 4])
def test_predicting_alpha_leaves_out_what_varies_in_a_few_rows(rows, method):
    (z, alpha), (test_z, test_alpha) = alpha_data(n=400), alpha_data(1, n=1000)
    z[:, 5] = test_z[:, 5] = 0
    expected = invariance.predict_alpha(z, alpha, test_z, test_alpha, method=method)
    # A unit that hardly ever fires, and once in the test set much more strongly.
    z[:rows, 5], test_z[7, 5] = 1e-4, 3.0
    found = invariance.predict_alpha(z, alpha, test_z, test_alpha, method=method)
    np.testing.assert_allclose(found.mse, expected.mse, rtol=1e-4)


def test_predicting_alpha_reads_what_varies_in_a_tenth_of_the_rows():
    (z, alpha), (test_z, test_alpha) = alpha_data(n=400), alpha_data(1, n=1000)
    for features, targets in ((z, alpha), (test_z, test_alpha)):
        features[:] = 0
        features[::10, 5] = 1e-4
        targets[::10] += 1
    found = invariance.predict_alpha(z, alpha, test_z, test_alpha)
    assert found.mse[1] < 0.1 * found.reference[1]


@pytest.mark.usefixtures("no_shape_checks")
def test_bad_input_is_a_sentence():
    f = random_features(0)
    with pytest.raises(ValueError, match="at least 2 alphas an image, got"):
        invariance.variances(f[:, :1])
    with pytest.raises(ValueError, match="got \\(6, 4\\)"):
        invariance.variances(f[..., 0])
    with pytest.raises(ValueError, match="NaN"):
        invariance.variances(np.where(f > 1, np.nan, f))
    with pytest.raises(ValueError, match="M is 0"):
        invariance.averaged_variance(f, 0)
    with pytest.raises(ValueError, match="effective rank needs"):
        invariance.effective_rank(f)
    z, alpha = alpha_data(n=20)
    with pytest.raises(ValueError, match="alpha must have 20 rows"):
        invariance.predict_alpha(z, alpha[:-1], z, alpha)
    with pytest.raises(ValueError, match="grid of l2 is empty"):
        invariance.predict_alpha(z, alpha, z, alpha, grid=())
