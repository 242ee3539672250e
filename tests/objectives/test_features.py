import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invclr_jax.objectives.features import FEATURES, apply_feature, unit_rows
from tests.reference import relative_error

FEATURE = {
    feature: jax.jit(functools.partial(apply_feature, feature=feature)) for feature in FEATURES
}


def batch(seed, k=6, d=4):
    return np.random.default_rng(seed).normal(size=(k, d)) + 1.0


def reference(z, feature):
    if feature == "unit":
        return z / np.linalg.norm(z, axis=1, keepdims=True)
    centred = z - z.mean(0)
    if feature == "centred":
        return centred / np.linalg.norm(centred, axis=1, keepdims=True)
    return centred / np.sqrt(z.var(0).sum())


@pytest.mark.parametrize("feature", FEATURES)
def test_definition(precision, feature):
    z = batch(0).astype(precision)
    h = apply_feature(z, feature)
    assert h.dtype == precision
    assert relative_error(h, reference(z, feature)) < (1e-12 if precision == np.float64 else 1e-5)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**31), scale=st.floats(1e-2, 1e2), shift=st.floats(-10, 10))
def test_invariances(seed, scale, shift):
    rng = np.random.default_rng(seed)
    z, offset, scales = (
        batch(seed),
        shift * rng.normal(size=(1, 4)),
        np.exp(rng.normal(size=(6, 1))),
    )
    with jax.enable_x64(True):
        assert relative_error(FEATURE["unit"](scales * z), FEATURE["unit"](z)) < 1e-10
        for feature in ("centred", "relative"):
            h = FEATURE[feature](z)
            assert relative_error(FEATURE[feature](scale * z + offset), h) < 1e-9


@pytest.mark.parametrize("value", [0.0, 1e-12, 1e-30])
def test_vanishing_rows_have_zero_feature_and_gradient(value):
    z = jnp.asarray(batch(0), jnp.float32).at[1].set(value)
    weights = jnp.asarray(batch(1), jnp.float32)
    gradient = jax.grad(lambda z: jnp.sum(weights * unit_rows(z)))
    second = jax.grad(lambda z: jnp.sum(gradient(z) ** 2))
    for array in jax.jit(lambda z: (unit_rows(z), gradient(z), second(z)))(z):
        assert np.isfinite(array).all()
        assert (array[1] == 0).all()
        assert (array[0] != 0).all()


@pytest.mark.parametrize("feature", ["centred", "relative"])
def test_batch_without_variance_stays_finite(feature):
    z = jnp.ones((1, 4))  # a batch of one
    gradient = jax.grad(lambda z: jnp.sum(apply_feature(z, feature) ** 2))
    assert (apply_feature(z, feature) == 0).all()
    assert (gradient(z) == 0).all()


def test_short_rows_keep_finite_second_derivatives():
    """Just above the threshold 1/length³ must still fit into float32."""
    z = jnp.full((1, 4), 2e-10, jnp.float32)
    gradient = jax.grad(lambda z: jnp.sum(jnp.arange(4.0)[None] * unit_rows(z)))
    assert relative_error(unit_rows(z), np.full((1, 4), 0.5)) < 1e-6
    assert np.isfinite(jax.jvp(gradient, (z,), (jnp.ones_like(z),))[1]).all()
