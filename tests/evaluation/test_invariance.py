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
    between = f.mean(1).var(0).sum()
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


@pytest.mark.usefixtures("no_shape_checks")
def test_bad_input_is_a_sentence():
    f = random_features(0)
    with pytest.raises(ValueError, match="at least 2 alphas per image, got"):
        invariance.variances(f[:, :1])
    with pytest.raises(ValueError, match="got \\(6, 4\\)"):
        invariance.variances(f[..., 0])
    with pytest.raises(ValueError, match="NaN"):
        invariance.variances(np.where(f > 1, np.nan, f))
    with pytest.raises(ValueError, match="effective rank needs"):
        invariance.effective_rank(f)
