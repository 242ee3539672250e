"""The noise of gradients, against draws of known spread."""

import numpy as np
import pytest

from benchmarks.estimators import gradient_noise, lazy_noise

MEAN = np.array([3.0, 4.0])
SPREAD = 2.5


@pytest.fixture(scope="module")
def draws():
    """Of mean (3, 4) and variance 2.5² in each of two parameters: noise √2·2.5/5."""
    return MEAN + SPREAD * np.random.default_rng(0).standard_normal((20_000, 2))


def test_noise_of_gradients_is_their_spread_over_their_mean(draws):
    trees = ({"a": draw[:1], "b": {"c": draw[1:]}} for draw in draws)
    assert gradient_noise(trees) == pytest.approx(np.sqrt(2) * SPREAD / 5, rel=0.02)


@pytest.mark.parametrize("every", [1, 4])
def test_lazy_noise_is_that_of_gradients_made_rare(draws, every):
    chosen = np.random.default_rng(1).random(len(draws)) < 1 / every
    rare = np.where(chosen[:, None], every * draws, 0.0)
    expected = lazy_noise(np.sqrt(2) * SPREAD / 5, every)
    assert gradient_noise({"a": draw} for draw in rare) == pytest.approx(expected, rel=0.03)
