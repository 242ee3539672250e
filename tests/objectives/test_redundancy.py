"""Barlow Twins and VICReg against NumPy in float64; VICReg's terms among the losses of pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.objectives.pairs import pair_loss
from invclr_jax.objectives.redundancy import barlow_twins, vicreg
from tests.objectives.losses import (
    check_devices,
    check_finite,
    check_float32,
    check_gradient,
    random_rows,
)
from tests.reference import relative_error

LOSSES = {"barlow": barlow_twins, "vicreg": vicreg}
A, B = random_rows(16, 5), random_rows(16, 5, seed=1)
B = A + 0.3 * B  # views of the same images


def numpy_barlow(a, b, off_diagonal=5e-3):
    a, b = ((x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) for x in (a, b))
    total = 0.0
    for i in range(a.shape[1]):
        for j in range(a.shape[1]):
            c = np.mean(a[:, i] * b[:, j])
            total += (c - 1) ** 2 if i == j else off_diagonal * c**2
    return total


def numpy_terms(x):
    matrix = np.cov(x, rowvar=False, ddof=1)
    v = np.maximum(0, 1 - np.sqrt(x.var(0, ddof=1) + 1e-4)).mean()
    return v, np.sum(matrix[~np.eye(len(matrix), dtype=bool)] ** 2) / x.shape[1]


def numpy_vicreg(a, b, invariance=25, variance=25, covariance=1):
    (v_a, c_a), (v_b, c_b) = numpy_terms(a), numpy_terms(b)
    distance = ((a - b) ** 2).mean()
    return invariance * distance + variance * (v_a + v_b) / 2 + covariance * (c_a + c_b)


def test_barlow_twins(x64):
    assert relative_error(barlow_twins(A, B), numpy_barlow(A, B)) < 1e-13
    assert relative_error(barlow_twins(A, B, 0.7), numpy_barlow(A, B, 0.7)) < 1e-13


def test_vicreg(x64):
    assert relative_error(vicreg(A, B), numpy_vicreg(A, B)) < 1e-13
    assert relative_error(vicreg(A, B, 1, 2, 3), numpy_vicreg(A, B, 1, 2, 3)) < 1e-13
    assert {*(A.std(0, ddof=1) < 1)} == {True, False}  # both sides of the hinge take part


def test_losses_of_pairs_are_vicreg_over_25(x64):
    (v_a, c_a), (v_b, c_b) = numpy_terms(A), numpy_terms(B)
    pair = jnp.asarray(A), jnp.asarray(B)
    assert relative_error(pair_loss(*pair, "vicreg"), numpy_vicreg(A, B) / 25) < 1e-13
    spread = (v_a + v_b) / 2 + (c_a + c_b) / 25
    assert relative_error(pair_loss(*pair, "varcov"), spread) < 1e-13


@pytest.mark.parametrize("name", LOSSES)
def test_gradients(x64, name):
    check_gradient(LOSSES[name], A, B)


@pytest.mark.parametrize("name", LOSSES)
def test_eight_devices_equal_one(x64, name):
    check_devices(LOSSES[name], A, B)


@pytest.mark.parametrize("name", LOSSES)
def test_constant_columns_and_low_precision(name):
    a, b = A.copy(), B.copy()
    a[:, 1], b[:, 2] = 3.0, 0.0
    check_finite(LOSSES[name], a, b)
    check_finite(LOSSES[name], np.zeros((4, 3)), np.zeros((4, 3)))
    check_float32(LOSSES[name], A, B)


def test_a_large_offset_costs_no_digits():
    """The covariance is that of centred rows, not a difference of large numbers."""
    exact = numpy_vicreg(A, B)
    shifted = jax.jit(vicreg)(*((x + 64).astype(np.float32) for x in (A, B)))
    assert relative_error(shifted, exact) < 1e-4


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize("name", LOSSES)
def test_mistakes(name):
    loss = LOSSES[name]
    with pytest.raises(ValueError, match=r"shape \(16, 5\) and \(16, 4\) cannot be paired"):
        loss(A, B[:, 1:])
    with pytest.raises(ValueError, match="1 row has no variance: use a batch of at least 2"):
        loss(A[:1], B[:1])
