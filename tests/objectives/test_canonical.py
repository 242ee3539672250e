"""Missing canonical correlation: golden numbers, NumPy, invariances, devices, degenerate rows."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jax.test_util import check_grads

from invclr_jax.objectives import canonical, penalty
from invclr_jax.objectives.canonical import canonical_penalty, stable_ridge
from invclr_jax.parallel import AXIS, mean_over_devices, shard_rows
from tests.objectives.cases import quick_jit
from tests.reference import relative_error

CASES = range(4)


def by_definition(z, z_prime, ridge):
    """W as the formula says, with an explicit inverse."""
    mean = np.concatenate([z, z_prime]).mean(0)
    a, b, n, dim = z - mean, z_prime - mean, 2 * len(z), z.shape[1]
    total, cross = (a.T @ a + b.T @ b) / n, (a.T @ b + b.T @ a) / n
    eps = ridge * np.trace(total) / dim
    return 1 - np.trace(np.linalg.inv(total + eps * np.eye(dim)) @ cross) / dim


def pairs(k, dim, *, noise=0.5, offset=3.0, seed=0):
    """Rows of a common part and independent nuisance, with unequal scales."""
    rng = np.random.default_rng(seed)
    common, mix = rng.normal(size=(k, dim)), rng.normal(size=(dim, dim))
    return tuple((common + noise * rng.normal(size=(k, dim))) @ mix + offset for _ in range(2))


def value_and_gradients(z, z_prime, ridge=0.01, axis=None):
    loss = jax.value_and_grad(functools.partial(canonical_penalty, ridge=ridge, axis=axis), (0, 1))
    return (loss if axis else quick_jit(loss))(jnp.asarray(z), jnp.asarray(z_prime))


@pytest.mark.parametrize("case", CASES)
def test_golden(golden, precision, case):
    stored = golden("canonical")
    z, z_prime = (stored[f"{name}_{case}"].astype(precision) for name in ("z", "z_prime"))
    value, gradients = value_and_gradients(z, z_prime, float(stored[f"rho_{case}"]))
    limit = 1e-11 if precision == np.float64 else 1e-4
    assert value.dtype == precision
    assert relative_error(value, stored[f"value_{case}"]) < limit
    for gradient, name in zip(gradients, ("grad_z", "grad_z_prime"), strict=True):
        assert relative_error(gradient, stored[f"{name}_{case}"]) < limit


def test_it_is_offered_beside_the_other_penalties():
    assert penalty.canonical_penalty is canonical_penalty


@pytest.mark.parametrize("shape", [(9, 4), (9, 17), (9, 18), (9, 19), (9, 40)])
@pytest.mark.parametrize("ridge", [0.01, 0.3])
def test_both_factorisations_are_the_definition(x64, shape, ridge):
    z, z_prime = pairs(*shape)
    expected = by_definition(z, z_prime, ridge)
    assert relative_error(canonical_penalty(z, z_prime, ridge=ridge), expected) < 1e-11
    rows = [jnp.asarray(rows) for rows in pairs(*shape, offset=0.0)]
    both = [way(*rows, ridge) for way in (canonical._by_covariance, canonical._by_gram)]
    assert relative_error(*both) < 1e-11


@pytest.mark.parametrize("shape", [(9, 5), (4, 10)])
def test_gradient_and_curvature_by_finite_differences(x64, shape):
    z, z_prime = (jnp.asarray(rows) for rows in pairs(*shape))
    check_grads(jax.jit(canonical_penalty), (z, z_prime), order=2, modes=("fwd", "rev"))


def test_range(x64):
    z, independent = pairs(4000, 3, noise=1e3)
    assert relative_error(canonical_penalty(z, independent), 1.0) < 0.05
    assert 0 < canonical_penalty(z, z) < 0.05
    assert abs(canonical_penalty(z, z, ridge=0.0)) < 1e-12
    opposite = 2 * z.mean(0, keepdims=True) - z
    assert relative_error(canonical_penalty(z, opposite, ridge=0.0), 2.0) < 1e-12


def test_known_correlations(x64):
    """Independent components whose correlation between views is known."""
    truth = np.array([0.95, 0.7, 0.3, 0.0])
    rng = np.random.default_rng(0)
    common, *noise = rng.normal(size=(3, 40_000, 4))
    z, z_prime = (np.sqrt(truth) * common + np.sqrt(1 - truth) * own for own in noise)
    found = canonical_penalty(z, z_prime, ridge=0.0)
    # The mean of four independent sample correlations.
    spread = np.sqrt(np.sum((1 - truth**2) ** 2) / len(z)) / 4
    assert abs(found - (1 - truth.mean())) < scipy.stats.norm.ppf(1 - 1e-4) * spread


def test_loopholes_gain_nothing(x64):
    z, z_prime = pairs(40, 6)
    value = canonical_penalty(z, z_prime)
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    for change in (lambda r: r @ rotation, lambda r: 1e-3 * r, lambda r: r + 1e3):
        assert relative_error(canonical_penalty(change(z), change(z_prime)), value) < 1e-9
    mix = rng.normal(size=(6, 6))
    exact = canonical_penalty(z, z_prime, ridge=0.0)
    assert relative_error(canonical_penalty(z @ mix, z_prime @ mix, ridge=0.0), exact) < 1e-10
    rank_two = z @ rotation[:, :2] @ rotation[:, :2].T
    assert canonical_penalty(rank_two, rank_two) > 4 / 6


def test_order_of_pairs_and_of_views_does_not_matter(x64):
    z, z_prime = pairs(20, 5)
    order = np.random.default_rng(2).permutation(20)
    value = canonical_penalty(z, z_prime)
    assert relative_error(canonical_penalty(z_prime, z), value) < 1e-12
    assert relative_error(canonical_penalty(z[order], z_prime[order]), value) < 1e-12


@pytest.mark.parametrize("dim", [5, 40])
def test_eight_devices_equal_one(x64, dim):
    z, z_prime = pairs(16, dim)
    value, gradients = value_and_gradients(z, z_prime)

    def mapped(z, z_prime):
        own = value_and_gradients(z, z_prime, axis=AXIS)
        return mean_over_devices(own[0], AXIS), own[1]

    # A row has one home, so its mean over devices is an eighth of what its home holds.
    many, parts = jax.pmap(mapped, axis_name=AXIS)(*shard_rows((z, z_prime), 8))
    assert relative_error(many, np.full(8, value)) < 1e-11
    for part, whole in zip(parts, gradients, strict=True):
        assert relative_error(part.reshape(16, dim) / 8, whole) < 1e-10


def degenerate_rows(k, dim):
    z, z_prime = (rows.astype(np.float32) for rows in pairs(k, dim))
    same = np.full((k, dim), 3.7, np.float32)
    dead = z.copy()
    dead[:, 1:] = 0
    return {
        "zero": (0 * z, 0 * z),
        "constant": (same, same),
        "two constants": (same, same + 1),
        "duplicated rows": (np.repeat(z[:1], k, 0), np.repeat(z_prime[:1], k, 0)),
        "one live component": (dead, dead[::-1].copy()),
        "equal components": (np.repeat(z[:, :1], dim, 1), np.repeat(z_prime[:, :1], dim, 1)),
        "identical views": (z, z),
        "tiny": (1e-18 * z, 1e-18 * z_prime),
        "huge": (1e15 * z, 1e15 * z_prime),
    }


@pytest.mark.parametrize("shape", [(12, 6), (4, 20)])
@pytest.mark.parametrize("name", degenerate_rows(4, 4))
def test_degenerate_rows_have_finite_values_and_gradients(shape, name):
    z, z_prime = degenerate_rows(*shape)[name]
    value, gradients = value_and_gradients(z, z_prime)
    assert -1e-4 < value < 2 + 1e-4
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_rank_one_in_float32_keeps_its_digits():
    """The worst condition: all variance of many components in one direction."""
    z, z_prime = pairs(300, 1)
    direction = np.random.default_rng(3).normal(size=(1, 256))
    wide = [(rows @ direction).astype(np.float32) for rows in (z, z_prime)]
    found = 1 - canonical_penalty(*wide)
    expected = 1 - by_definition(*(rows.astype(np.float64) for rows in wide), 0.01)
    assert relative_error(found, expected) < 1e-2
    value, gradients = value_and_gradients(*wide)
    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_half_precision_is_computed_in_float32():
    z, z_prime = (jnp.asarray(rows, jnp.bfloat16) for rows in pairs(12, 6))
    value = canonical_penalty(z, z_prime)
    expected = by_definition(*(np.asarray(rows, np.float64) for rows in (z, z_prime)), 0.01)
    assert value.dtype == jnp.float32
    assert relative_error(value, expected) < 1e-4


@pytest.mark.parametrize(
    ("z", "z_prime", "ridge", "words"),
    [
        (np.zeros((3, 2)), np.zeros((4, 2)), 0.01, r"\(3, 2\) and \(4, 2\)"),
        (np.zeros(3), np.zeros(3), 0.01, r"must be \[k, d\]"),
        (np.zeros((3, 2)), np.zeros((3, 2)), -0.1, "ridge is -0.1"),
        (np.zeros((3, 2)), np.zeros((3, 2)), float("nan"), "ridge is nan"),
        (np.zeros((3, 6)), np.zeros((3, 6)), 0.0, "3 pairs cannot span 6 components"),
    ],
)
def test_mistakes(no_shape_checks, z, z_prime, ridge, words):
    with pytest.raises(ValueError, match=words):
        canonical_penalty(z, z_prime, ridge=ridge)


def test_few_pairs_ask_for_a_stronger_ridge():
    assert stable_ridge(512, 64) == 0.01
    assert stable_ridge(64, 64) == 0.25
    assert stable_ridge(512, 2048) == 4.0
    assert stable_ridge(64, 64, least=0.5) == 0.5
    with pytest.raises(ValueError, match="0 pairs of 64 components"):
        stable_ridge(0, 64)


def test_the_stronger_ridge_leaves_a_gradient_where_rows_are_few(x64):
    """Without it 2K ≤ d rows look alike, whatever they hold: W near 1, and its gradient small."""
    z, z_prime = pairs(8, 40, noise=0.1)
    weak, strong = (np.abs(value_and_gradients(z, z_prime, r)[1]).max() for r in (1e-9, 1.0))
    assert abs(canonical_penalty(z, z_prime, ridge=1e-9) - (1 + 1 / 40)) < 1e-6
    assert weak < 1e-4 * strong
