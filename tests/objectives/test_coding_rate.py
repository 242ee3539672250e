"""EMP-SSL's loss against NumPy in float64, by the d×d determinant of its definition."""

import numpy as np
import pytest

from invclr_jax.objectives.coding_rate import emp
from tests.objectives.losses import (
    check_devices,
    check_finite,
    check_float32,
    check_gradient,
    random_rows,
)
from tests.reference import relative_error

SHAPES = {"few images": (8, 3, 11), "many images": (16, 3, 5)}
"""The determinant is taken of the Gram matrix, or of the covariance."""


def numpy_emp(views, eps=0.2, similarity=200):
    n, v, d = views.shape
    units = views / np.linalg.norm(views, axis=2, keepdims=True)
    centres = units.mean(1)
    cosines = [
        units[i, j] @ centres[i] / np.linalg.norm(centres[i]) for i in range(n) for j in range(v)
    ]
    rates = [
        np.linalg.slogdet(np.eye(d) + d / (n * eps) * units[:, j].T @ units[:, j])[1] / 2
        for j in range(v)
    ]
    return -similarity * np.mean(cosines) - np.mean(rates)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_value_gradient_and_devices(x64, shape):
    views = random_rows(*shape)
    assert relative_error(emp(views), numpy_emp(views)) < 1e-13
    assert relative_error(emp(views, 0.5, 3.0), numpy_emp(views, 0.5, 3.0)) < 1e-13
    check_gradient(lambda views: emp(views, 0.2, 1.0), views)
    check_devices(lambda views, axis: emp(views, 0.2, 1.0, axis=axis), views)


def test_extremes(x64):
    """Equal views agree wholly; orthogonal images have the largest rate."""
    views = np.repeat(np.eye(4)[:, None], 2, axis=1)
    assert relative_error(emp(views), -200 - 2 * np.log(1 + 1 / 0.2)) < 1e-14


def test_degenerate_rows_and_low_precision():
    views = random_rows(8, 3, 5)
    views[1], views[2, 0] = 0, 0
    views[3, 0], views[3, 1], views[3, 2] = 1, -1, 0  # their mean is zero
    check_finite(emp, views)
    check_finite(emp, np.ones((8, 3, 20)))
    check_float32(emp, random_rows(8, 3, 5))


@pytest.mark.usefixtures("no_shape_checks")
def test_mistakes():
    with pytest.raises(ValueError, match=r"shape \(4, 5\): give projections \[n, v, d\]"):
        emp(np.ones((4, 5)))
    with pytest.raises(ValueError, match=r"eps must be positive, got 0: EMP-SSL uses 0.2"):
        emp(np.ones((4, 2, 5)), 0)
