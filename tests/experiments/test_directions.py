"""Stable and corrupted directions of representations whose truth is known."""

import numpy as np
import pytest

from experiments.directions import canonical_basis, split
from invclr_jax.evaluation.correlations import canonical_correlations

N, VIEWS = 1500, 12


@pytest.fixture(scope="module")
def views():
    """A stable copy of the first factor, a buried copy of the second, a dead unit; all mixed."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(N, 2))
    z = factors[:, None, :] + np.array([0.1, 3.0]) * rng.normal(size=(N, VIEWS, 2))
    mixed = z @ rng.normal(size=(2, 2)) + 4
    return np.concatenate([mixed, np.full((N, VIEWS, 1), 7.0)], axis=2), factors


def test_correlations_are_those_of_the_measure(views):
    z, _ = views
    expected = canonical_correlations(*(part.reshape(-1, 3) for part in (z[:, :-1], z[:, 1:])))
    np.testing.assert_allclose(canonical_basis(z)[0], expected, atol=1e-6)


def test_averaging_recovers_what_single_views_bury(views):
    z, factors = views
    found = split(z, factors, train=1000)
    assert found["stable"] == 1
    # Errors of the first and the second factor: noise/(1 + noise) of variance 0.01 and 9.
    assert found["single/stable"] == pytest.approx(0.01 + 1.0, rel=0.1)
    assert found["single/all"] == pytest.approx(0.01 + 0.9, rel=0.1)
    assert found["average/stable"] == pytest.approx(1.0, rel=0.1)
    assert found["average/all"] == pytest.approx((9 / VIEWS) / (1 + 9 / VIEWS), rel=0.1)
