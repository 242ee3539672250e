"""Distributions of alpha against scipy.stats, in draws and in moments."""

import jax
import numpy as np
import pytest
from scipy import integrate, stats

from invclr_jax.transforms.base import (
    Box,
    Distribution,
    LogOfUniform,
    LogUniform,
    Normal,
    TruncatedNormal,
)

LOW, HIGH = np.array([0.08, 0.5]), np.array([1.0, 30.0])
LOCATION, SCALE = np.array([0.3, -2.0]), np.array([0.2, 5.0])
# One range around the peak, one far out in the right tail, one in the left.
ENDS = np.array([[-0.5, 0.4], [15.0, 80.0]])


class LogOfUniformLaw(stats.rv_continuous):
    """The logarithm of U(low, high), from its distribution function alone."""

    def __init__(self, low, high):
        super().__init__(a=np.log(low), b=np.log(high))
        self.low, self.high = low, high

    def _cdf(self, x):
        return (np.exp(x) - self.low) / (self.high - self.low)


CASES = {
    "Box": (Box(LOW, HIGH), [stats.uniform(a, b - a) for a, b in zip(LOW, HIGH, strict=True)]),
    "Normal": (
        Normal(LOCATION, SCALE),
        [stats.norm(m, s) for m, s in zip(LOCATION, SCALE, strict=True)],
    ),
    "TruncatedNormal": (
        TruncatedNormal(LOCATION, SCALE, *ENDS.T),
        [
            stats.truncnorm((a - m) / s, (b - m) / s, m, s)
            for m, s, (a, b) in zip(LOCATION, SCALE, ENDS, strict=True)
        ],
    ),
    "LogUniform": (
        LogUniform(LOW, HIGH),
        [stats.loguniform(a, b) for a, b in zip(LOW, HIGH, strict=True)],
    ),
    "LogOfUniform": (
        LogOfUniform(LOW, HIGH),
        [LogOfUniformLaw(a, b) for a, b in zip(LOW, HIGH, strict=True)],
    ),
}
every_distribution = pytest.mark.parametrize("name", CASES)


@every_distribution
def test_moments_are_scipys(name):
    ours, laws = CASES[name]
    assert isinstance(ours, Distribution)
    assert ours.size == 2
    np.testing.assert_allclose(ours.mean, [law.mean() for law in laws], rtol=1e-11)
    np.testing.assert_allclose(ours.variance, [law.var() for law in laws], rtol=1e-9)


@every_distribution
def test_draws_have_the_distribution_and_are_independent(name, precision):
    ours, laws = CASES[name]
    draws = np.asarray(jax.jit(ours.sample, static_argnums=1)(jax.random.key(0), 5000))
    assert draws.dtype == precision
    for column, law in zip(draws.T.astype(float), laws, strict=True):
        assert stats.kstest(column, law.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(draws.T)[0, 1]) < 5 / np.sqrt(5000)
    assert abs(np.corrcoef(draws[1:, 0], draws[:-1, 0])[0, 1]) < 5 / np.sqrt(5000)


def test_draws_stay_between_the_ends():
    cut = TruncatedNormal([0.0, 0.0], [1.0, 1.0], [6.0, -0.001], [6.1, 0.001])
    draws = np.asarray(cut.sample(jax.random.key(1), 2000))
    assert (draws >= cut.low.astype(np.float32)).all()
    assert (draws <= cut.high.astype(np.float32)).all()
    assert (draws.std(0) > 0.2 * (cut.high - cut.low)).all()
    draws = np.asarray(LogUniform(LOW, HIGH).sample(jax.random.key(1), 2000))
    assert (draws >= LOW.astype(np.float32)).all()
    assert (draws <= HIGH.astype(np.float32)).all()


@pytest.mark.parametrize(("low", "high"), [(-1e3, 1e3), (7.0, 1e6), (2.0, 2.0 + 1e-6), (-1.0, 0.0)])
def test_truncated_moments_are_those_of_the_integral(low, high):
    """Wide, one-sided, narrow: where the closed form overflows or cancels."""
    ours = TruncatedNormal([0.0], [1.0], [low], [high])
    near = [max(low, -40), min(high, 40)]
    peak = np.clip(0, low, high)

    def integral(f):
        options = {"points": [peak], "limit": 500, "epsabs": 1e-14, "epsrel": 1e-12}
        return integrate.quad(lambda x: f(x) * np.exp((peak**2 - x**2) / 2), *near, **options)[0]

    total = integral(lambda x: 1)
    mean = integral(lambda x: x) / total
    np.testing.assert_allclose(ours.mean, mean, rtol=1e-12, atol=1e-13)
    variance = integral(lambda x: (x - mean) ** 2) / total
    np.testing.assert_allclose(ours.variance, variance, rtol=1e-9)


@pytest.mark.parametrize("kind", [Box, LogUniform, LogOfUniform])
def test_equal_ends_fix_a_component(kind):
    fixed = kind([2.0], [2.0])
    value = np.log(2.0) if kind is LogOfUniform else 2.0
    np.testing.assert_allclose(fixed.mean, value)
    np.testing.assert_allclose(fixed.variance, 0, atol=1e-30)
    np.testing.assert_allclose(fixed.sample(jax.random.key(0), 3), value, rtol=1e-6)


def test_no_components_at_all():
    empty = Box((), ())
    assert empty.size == 0
    assert empty.mean.shape == empty.variance.shape == (0,)
    assert empty.sample(jax.random.key(0), 4).shape == (4, 0)


def test_distributions_are_values():
    assert Box(LOW, HIGH) == Box(list(LOW), tuple(HIGH))
    assert hash(Box(LOW, HIGH)) == hash(Box(list(LOW), tuple(HIGH)))
    assert Box(LOW, HIGH) != Box(LOW, HIGH, names=("a", "b"))
    assert Box(LOW, HIGH) != LogUniform(LOW, HIGH)
    with pytest.raises(ValueError, match="read-only"):
        Box(LOW, HIGH).low[0] = 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normal([0.0], [0.0]), "Normal component 0 has std 0: give a positive"),
        (lambda: Normal([np.inf], [1.0]), r"Normal needs finite numbers, got mean \[inf\]"),
        (lambda: Normal([0.0, 0.0], [1.0]), r"mean of shape \(2,\) and std of shape \(1,\)"),
        (lambda: TruncatedNormal([0.0], [1.0], [0.0], [np.inf]), r"finite numbers, got high \[inf"),
        (lambda: TruncatedNormal([0.0], [1.0], [1.0], [0.0]), "low 1 > high 0: swap"),
        (lambda: TruncatedNormal([0.0], [-1.0], [0.0], [1.0]), "has scale -1: give a positive"),
        (lambda: LogUniform([0.0], [1.0]), "LogUniform component 0 has low 0: give a positive"),
        (lambda: LogOfUniform([-1.0], [1.0]), "LogOfUniform component 0 has low -1"),
        (lambda: Box([0.0], [1.0], ["a", "b"]), r"1 components and the names \('a', 'b'\)"),
        (lambda: Box(LOW, HIGH, ["a", "a"]), "different from the others"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
