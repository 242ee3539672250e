"""The negative cosine against NumPy."""

import jax
import numpy as np
import pytest

from invclr_jax.objectives.siamese import negative_cosine
from tests.objectives.losses import check_finite, check_float32, check_gradient, random_rows
from tests.reference import relative_error

P, Z = random_rows(6, 5), random_rows(6, 5, seed=1)


def test_value(x64):
    cosines = [p @ z / np.linalg.norm(p) / np.linalg.norm(z) for p, z in zip(P, Z, strict=True)]
    assert relative_error(negative_cosine(P, Z), -np.mean(cosines)) < 1e-14
    assert relative_error(negative_cosine(P, 3 * P), -1.0) < 1e-14


def test_gradient_in_predictions_only(x64):
    check_gradient(lambda p: negative_cosine(p, Z), P)
    assert not jax.grad(negative_cosine, 1)(P, Z).any()


def test_zero_rows_and_low_precision():
    p = P.copy()
    p[2] = 0
    check_finite(negative_cosine, p, Z)
    check_float32(negative_cosine, P, Z)


@pytest.mark.usefixtures("no_shape_checks")
def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"\(6, 5\) and targets of shape \(5, 5\) cannot be"):
        negative_cosine(P, Z[1:])
