"""Losses of pairs against NumPy's definitions, and one device against eight."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from invclr_jax.objectives.canonical import canonical_penalty, stable_ridge
from invclr_jax.objectives.contrastive import info_nce
from invclr_jax.objectives.pairs import PAIR_LOSSES, pair_loss, squared_distance
from invclr_jax.parallel import AXIS, mean_over_devices, shard_rows
from tests.objectives.cases import quick_jit
from tests.reference import relative_error


def pairs(k=16, dim=5, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(k, dim))
    # Some components above VICReg's wanted deviation of 1, some below.
    scale = np.linspace(0.2, 2, dim)
    return tuple(
        jnp.asarray((common + 0.4 * rng.normal(size=(k, dim))) * scale + 3) for _ in range(2)
    )


def vicreg_terms(z, z_prime):
    """Invariance, variance and covariance with the weights 25, 25, 1, as VICReg defines them."""
    variance, covariance = 0.0, 0.0
    for rows in np.asarray(z), np.asarray(z_prime):
        matrix = np.cov(rows, rowvar=False)
        deviation = np.sqrt(np.diag(matrix) + 1e-4)
        variance += 25 * np.maximum(1 - deviation, 0).mean() / 2
        covariance += (matrix[~np.eye(len(matrix), dtype=bool)] ** 2).sum() / len(matrix)
    return 25 * np.mean((np.asarray(z) - np.asarray(z_prime)) ** 2), variance, covariance


def test_vicreg_and_its_terms(x64):
    z, z_prime = pairs()
    invariance, variance, covariance = vicreg_terms(z, z_prime)
    assert variance > 0
    spread = (variance + covariance) / 25
    assert relative_error(pair_loss(z, z_prime, "varcov"), spread) < 1e-12
    assert relative_error(pair_loss(z, z_prime, "vicreg"), spread + invariance / 25) < 1e-12


def test_the_others_are_their_functions(x64):
    z, z_prime = pairs()
    contrast = pair_loss(z, z_prime, "infonce", temperature=0.2)
    assert relative_error(contrast, info_nce(z, z_prime, 0.2)) < 1e-12
    for ridge in (0.01, 0.3):
        found = pair_loss(z, z_prime, "canonical", ridge=ridge)
        assert relative_error(found, canonical_penalty(z, z_prime, ridge=ridge)) < 1e-12


def test_without_a_ridge_it_is_the_one_that_suits_the_batch(x64):
    z, z_prime = pairs(k=8, dim=12)
    suited = stable_ridge(8, 12)
    assert suited == pytest.approx(0.5625)
    found = pair_loss(z, z_prime, "canonical")
    assert relative_error(found, canonical_penalty(z, z_prime, ridge=suited)) < 1e-12


@pytest.mark.parametrize("name", PAIR_LOSSES)
def test_gradients_by_finite_differences(x64, name):
    loss = jax.jit(functools.partial(pair_loss, name=name))
    check_grads(loss, pairs(k=9, dim=4), order=1, modes=("rev",))


@pytest.mark.parametrize("name", [*PAIR_LOSSES, "relative"])
def test_eight_devices_equal_one(x64, name):
    z, z_prime = pairs(k=16, dim=40)

    def value_and_gradient(z, z_prime, axis):
        def loss(z, z_prime):
            if name == "relative":
                return squared_distance(z, z_prime, feature=name, axis=axis)
            return pair_loss(z, z_prime, name, axis=axis)

        value, gradients = jax.value_and_grad(loss, (0, 1))(z, z_prime)
        return mean_over_devices(value, axis), gradients

    one = quick_jit(functools.partial(value_and_gradient, axis=None))(z, z_prime)
    mapped = jax.pmap(functools.partial(value_and_gradient, axis=AXIS), axis_name=AXIS)
    many = mapped(*shard_rows((z, z_prime), 8))
    assert relative_error(many[0], np.full(8, one[0])) < 1e-11
    # A row has one home, so its mean over devices is an eighth of what its home holds.
    for parts, whole in zip(many[1], one[1], strict=True):
        assert relative_error(parts.reshape(whole.shape) / 8, whole) < 1e-10
