import functools

import jax
import numpy as np
import pytest

from invclr_jax.objectives import penalty
from invclr_jax.transforms.base import Box

pytestmark = pytest.mark.usefixtures("no_shape_checks")

BOX = Box(np.zeros(2), np.ones(2))
ALPHA = np.full((4, 2), 0.5, np.float32)
SIGNS = np.ones((4, 3), np.float32)


def represent(alpha):
    return alpha @ np.ones((2, 3), np.float32)


public = functools.partial(penalty.penalty, represent, ALPHA, box=BOX, key=jax.random.key(0))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: public(estimator="best"), "no estimator 'best': there are sampled, moments"),
        (lambda: public(feature="raw"), "no feature 'raw': there are unit, centred, relative"),
        (lambda: public(estimator="exact", feature="raw"), "no feature 'raw'"),
        (lambda: public(num_samples=0), "num_samples must be at least 1, got 0"),
        (
            lambda: penalty.exact_penalty(represent, ALPHA, Box(np.zeros(3), np.ones(3))),
            "alpha has 2 columns but the box has 3 components",
        ),
        (
            lambda: penalty.moments_penalty(represent, ALPHA[0], BOX, SIGNS),
            r"alpha has shape \(2,\): it must be \[K, a\]",
        ),
        (
            lambda: penalty.moments_penalty(represent, ALPHA, BOX, SIGNS[:, :2]),
            r"e has shape \(4, 2\): it must be that of z, \(4, 3\)",
        ),
        (
            lambda: penalty.sampled_penalty(represent, ALPHA, ALPHA, SIGNS),
            r"alpha_prime has shape \(4, 2\): .* must be \[L, 4, 2\]",
        ),
        (
            lambda: penalty.forward_penalty(represent, ALPHA, ALPHA[:2]),
            r"directions have shape \(2, 2\)",
        ),
        (
            lambda: penalty.exact_penalty(represent, ALPHA, BOX, signs=SIGNS[:, :1]),
            r"signs have shape \(4, 1\): give one ±1 for each of 4 rows",
        ),
        (
            lambda: penalty.finite_penalty(SIGNS, SIGNS[:2]),
            r"\(4, 3\) and \(2, 3\) cannot be compared",
        ),
    ],
)
def test_mistakes_are_named(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
