"""The uniform distribution of alpha and the protocol."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from invclr_jax.transforms.base import Box, Distribution, Transform, alpha_names, takes_images
from invclr_jax.transforms.image import ImageTransform

LOW, HIGH = np.array([-1.0, 0.5, 2.0]), np.array([3.0, 0.75, 2.0])


def test_moments_are_those_of_the_uniform_law():
    box = Box(LOW, HIGH)
    law = stats.uniform(LOW[:2], (HIGH - LOW)[:2])
    np.testing.assert_allclose(box.mean, [*law.mean(), 2.0])
    np.testing.assert_allclose(box.variance, [*law.var(), 0.0])
    assert box.size == 3


def test_draws_are_uniform_and_independent():
    draws = np.asarray(jax.jit(Box(LOW, HIGH).sample, static_argnums=1)(jax.random.key(0), 5000))
    assert draws.shape == (5000, 3)
    for column in range(2):
        law = stats.uniform(LOW[column], HIGH[column] - LOW[column])
        assert stats.kstest(draws[:, column], law.cdf).pvalue > 1e-3
    np.testing.assert_array_equal(draws[:, 2], 2)
    assert abs(np.corrcoef(draws[:, 0], draws[:, 1])[0, 1]) < 5 / np.sqrt(5000)
    assert abs(np.corrcoef(draws[1:, 0], draws[:-1, 0])[0, 1]) < 5 / np.sqrt(5000)


def test_draws_follow_the_precision(precision):
    assert Box(LOW, HIGH).sample(jax.random.key(0), 4).dtype == precision


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**31 - 1))
def test_closed_form_of_the_penalty_holds(seed):
    """E[(g·(alpha'-alpha))²] = Σ g_j² variance_j + (g·(mean-alpha))², by Gauss quadrature."""
    rng = np.random.default_rng(seed)
    low = rng.normal(size=3)
    box = Box(low, low + rng.uniform(0, 2, 3))
    gradient, alpha = rng.normal(size=(2, 3))
    closed = gradient**2 @ box.variance + (gradient @ (box.mean - alpha)) ** 2
    signs = np.stack(np.meshgrid(*[[-1, 1]] * 3), -1).reshape(-1, 3)
    nodes = box.mean + signs * np.sqrt(box.variance)
    np.testing.assert_allclose(closed, np.mean(((nodes - alpha) @ gradient) ** 2), rtol=1e-9)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([0.0, 2.0], [1.0, 1.0], "component 1 has low 2 > high 1: swap them"),
        ([0.0], [1.0, 1.0], r"shape \(1,\) and high of shape \(2,\)"),
        (0.0, 1.0, "Box needs vectors of one length"),
        ([0.0, np.nan], [1.0, 1.0], "finite"),
        ([0.0], [np.inf], r"finite numbers, got high \[inf\]"),
    ],
)
def test_mistakes_are_named(no_shape_checks, low, high, message):
    with pytest.raises(ValueError, match=message):
        Box(np.asarray(low), np.asarray(high))


def test_protocol_is_what_it_says():
    assert isinstance(ImageTransform(8, (0.5,) * 3, (0.2,) * 3), Transform)
    assert not isinstance(Box(LOW, HIGH), Transform)
    assert isinstance(Box(LOW, HIGH), Distribution)


class Own:
    """As in the guide: four attributes and nothing else."""

    def __init__(self, size):
        self.alpha = Box(np.zeros(size), np.ones(size))

    def sample(self, key, n):
        return self.alpha.sample(key, n), None

    def apply(self, x, alpha, beta):
        return x

    def untransformed(self, x):
        return x


def test_names_are_made_up_where_there_are_none():
    assert alpha_names(Own(1)) == ("own",)
    assert alpha_names(Own(2)) == ("own_0", "own_1")
    assert alpha_names(Own(0)) == ()
    assert takes_images(Own(1))
