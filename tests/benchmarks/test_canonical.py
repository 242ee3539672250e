"""Data of known correlations: its truth against large samples, and what training can reach."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import canonical
from benchmarks.gaussian_pairs import Pairs, by_ridge, by_running_moments, estimate, fresh_state
from invclr_jax.evaluation.correlations import canonical_correlations

FEW, MANY = Pairs(16, 8), Pairs(20_000, 8)


def test_the_truth_is_what_large_samples_have(x64):
    z, z_prime = (x @ MANY.start for x in MANY.draw(jax.random.key(0)))
    missing = 1 - canonical_correlations(z, z_prime).mean()
    assert float(MANY.missing(MANY.start, ridge=0.0)) == pytest.approx(missing, abs=0.01)


def test_the_best_components_have_the_least_that_can_be_missing(x64):
    _, correlation, _ = FEW._truth
    best = np.eye(len(correlation))[:, np.argsort(correlation)[-FEW.dim :]]
    assert float(FEW.missing(jnp.asarray(best), ridge=0.0)) == pytest.approx(FEW.least)
    assert float(FEW.missing(FEW.start, ridge=0.0)) > FEW.least


def test_settled_running_moments_give_the_true_gradient(x64):
    gradient = jax.jit(estimate(MANY, by_running_moments(0.5)))
    state = fresh_state(MANY.dim)
    for i in range(5):
        (value, state), slope = gradient(MANY.start, jax.random.key(i), state)
    truth = jax.grad(MANY.missing)(MANY.start)
    assert float(value) == pytest.approx(float(MANY.missing(MANY.start)), abs=0.01)
    cosine = jnp.vdot(slope, truth) / jnp.linalg.norm(slope) / jnp.linalg.norm(truth)
    assert cosine > 0.98


def test_training_lowers_the_true_value(monkeypatch):
    monkeypatch.setattr(canonical, "STEPS", 60)
    pairs = Pairs(64, 8)
    after = float(pairs.missing(canonical.trained(pairs, by_ridge(0.1))))
    assert pairs.least < after < 0.8 * float(pairs.missing(pairs.start))
