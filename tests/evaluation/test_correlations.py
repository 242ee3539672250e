"""Canonical correlations: golden numbers, a generalised eigenproblem, invariance, missing rank."""

import jax
import numpy as np
import pytest
import scipy.linalg

from invclr_jax.evaluation import invariance
from invclr_jax.evaluation.correlations import canonical_correlations
from invclr_jax.objectives.canonical import canonical_penalty
from tests.reference import relative_error


def pairs(n, dim, seed=0):
    rng = np.random.default_rng(seed)
    common, mix = rng.normal(size=(n, dim)), rng.normal(size=(dim, dim))
    scale = np.linspace(0, 2, dim)
    return tuple((common + scale * rng.normal(size=(n, dim))) @ mix + 5 for _ in range(2))


@pytest.mark.parametrize("case", range(4))
def test_golden(golden, x64, case):
    stored = golden("canonical")
    found = canonical_correlations(stored[f"z_{case}"], stored[f"z_prime_{case}"])
    assert relative_error(found, stored[f"correlations_{case}"]) < 1e-11
    assert invariance.canonical_correlations is canonical_correlations


def test_generalised_eigenproblem(x64):
    z, z_prime = pairs(50, 7)
    mean = np.concatenate([z, z_prime]).mean(0)
    a, b = z - mean, z_prime - mean
    expected = scipy.linalg.eigh(a.T @ b + b.T @ a, a.T @ a + b.T @ b, eigvals_only=True)[::-1]
    assert relative_error(canonical_correlations(z, z_prime), expected) < 1e-11


def test_one_component_is_the_correlation_of_both_orders(x64):
    z, z_prime = pairs(30, 1)
    both = np.concatenate([z, z_prime]), np.concatenate([z_prime, z])
    expected = np.corrcoef(*(rows[:, 0] for rows in both))[0, 1]
    assert relative_error(canonical_correlations(z, z_prime), [expected]) < 1e-12


def test_their_mean_is_what_the_penalty_does_not_miss(x64):
    z, z_prime = pairs(40, 6)
    missing = 1 - canonical_correlations(z, z_prime).mean()
    assert relative_error(canonical_penalty(z, z_prime, ridge=0.0), missing) < 1e-10


def test_affine_maps_change_nothing(x64):
    z, z_prime = pairs(60, 5)
    mix = np.random.default_rng(1).normal(size=(5, 5)) * np.array([1e-3, 1, 1, 1e3, 1])
    moved = canonical_correlations(z @ mix - 100, z_prime @ mix - 100)
    assert relative_error(moved, canonical_correlations(z, z_prime)) < 1e-8


def test_directions_without_variance_count_as_zero(precision):
    z, z_prime = pairs(60, 3)
    expected = np.sort([*canonical_correlations(z, z_prime), 0.0, 0.0])[::-1]
    lift = np.random.default_rng(2).normal(size=(3, 5))
    limit = 1e-9 if precision == np.float64 else 1e-3
    for wide in (lift, np.eye(3, 5)):
        rows = ((part @ wide).astype(precision) for part in (z, z_prime))
        assert relative_error(canonical_correlations(*rows), expected) < limit
    np.testing.assert_array_equal(canonical_correlations(0 * z, 0 * z_prime), np.zeros(3))


def test_fewer_pairs_than_components(x64):
    found = canonical_correlations(*pairs(4, 10))
    assert found.shape == (10,)
    # Seven directions hold all eight centred rows; the swap of views has trace -1 on them.
    assert abs(found.sum() + 1) < 1e-10


def test_jax_arrays_are_welcome(x64):
    z, z_prime = pairs(20, 4)
    found = canonical_correlations(jax.numpy.asarray(z), jax.numpy.asarray(z_prime))
    np.testing.assert_array_equal(found, canonical_correlations(z, z_prime))


@pytest.mark.parametrize(
    ("z", "z_prime", "words"),
    [
        (np.zeros((3, 2)), np.zeros((4, 2)), "z_prime must have 3 rows"),
        (np.zeros((3, 2)), np.zeros((3, 4)), "2 and 4 components"),
        (np.zeros((1, 2)), np.zeros((1, 2)), "at least 2 pairs"),
        (np.full((3, 2), np.nan), np.zeros((3, 2)), "NaN"),
        (np.zeros(3), np.zeros(3), "matrix"),
    ],
)
def test_mistakes(no_shape_checks, z, z_prime, words):
    with pytest.raises(ValueError, match=words):
        canonical_correlations(z, z_prime)
