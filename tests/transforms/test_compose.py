"""Compositions, frozen and occasional transforms, and shifts of any of them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.objectives.penalty import exact_penalty, moments_penalty
from invclr_jax.transforms import base
from invclr_jax.transforms.base import Box, Compose, LogUniform, NoPlainVersion, Sometimes, frozen
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.spirograph import SpirographTransform

X = np.random.default_rng(0).random((5, 4, 4, 3), np.float32)


AMOUNT = Box([1.0], [3.0], ["amount"])


@dataclasses.dataclass(frozen=True)
class Add:
    """x + alpha + beta."""

    alpha: base.Distribution = AMOUNT

    def sample(self, key, n):
        alpha_key, beta_key = jax.random.split(key)
        return self.alpha.sample(alpha_key, n), jax.random.normal(beta_key, (n,))

    def apply(self, x, alpha, beta):
        return x + (alpha.sum(1) + beta)[:, None, None, None]

    def untransformed(self, x):
        return jnp.asarray(x)


@dataclasses.dataclass(frozen=True)
class Scale:
    """alpha·x, without names or beta; plain pictures are negative, to tell them apart."""

    alpha = LogUniform([0.5, 1.0], [2.0, 1.5])

    def sample(self, key, n):
        return self.alpha.sample(key, n), None

    def apply(self, x, alpha, beta):
        return x * alpha.prod(1)[:, None, None, None]

    def untransformed(self, x):
        return -jnp.asarray(x)


BOTH = Compose([Add(), Scale(), Add()])


def test_composition_is_its_parts_in_order():
    alpha, beta = BOTH.sample(jax.random.key(0), 5)
    assert alpha.shape == (5, 4)
    first, factor, last = alpha[:, :1], alpha[:, 1:3].prod(1), alpha[:, 3:]
    spread = lambda v: np.asarray(v).reshape(5, 1, 1, 1)  # noqa: E731
    expected = (X + spread(first) + spread(beta[0])) * spread(factor)
    expected += spread(last) + spread(beta[2])
    assert beta[1] is None
    for apply in (BOTH.apply, jax.jit(BOTH.apply)):
        np.testing.assert_allclose(apply(X, alpha, beta), expected, rtol=1e-5)
    np.testing.assert_array_equal(BOTH.untransformed(X), -X)
    assert np.abs(np.asarray(beta[0]) - np.asarray(beta[2])).min() > 0  # keys differ


def test_distribution_of_a_composition_is_the_product():
    alpha = BOTH.alpha
    assert alpha.names == ("amount", "scale_0", "scale_1", "amount_2")
    assert alpha.size == 4
    np.testing.assert_allclose(alpha.mean, [2, *Scale.alpha.mean, 2])
    np.testing.assert_allclose(alpha.variance, [1 / 3, *Scale.alpha.variance, 1 / 3])
    for draws in (alpha.sample(jax.random.key(1), 4000), BOTH.sample(jax.random.key(2), 4000)[0]):
        error = np.sqrt(alpha.variance / 4000)
        assert (np.abs(np.mean(draws, 0) - alpha.mean) < 4 * error).all()
        assert np.abs(np.corrcoef(np.asarray(draws).T) - np.eye(4)).max() < 5 / np.sqrt(4000)


def test_compositions_nest_and_are_values():
    nested = Compose([Compose([Add(), Scale()]), Add()])
    assert nested.alpha.names == BOTH.alpha.names
    assert Compose((Add(), Scale(), Add())) == BOTH
    assert hash(Compose((Add(), Scale(), Add()))) == hash(BOTH)
    alpha, beta = nested.sample(jax.random.key(3), 5)
    flat = (*beta[0], beta[1])
    np.testing.assert_allclose(nested.apply(X, alpha, beta), BOTH.apply(X, alpha, flat))


def test_frozen_alpha_is_beta():
    still = frozen(Scale())
    alpha, beta = still.sample(jax.random.key(0), 5)
    assert alpha.shape == (5, 0)
    assert still.alpha.size == 0
    assert still.alpha.mean.shape == still.alpha.variance.shape == (0,)
    expected = Scale().apply(X, *Scale().sample(jax.random.key(0), 5))
    np.testing.assert_array_equal(still.apply(X, alpha, beta), expected)
    np.testing.assert_array_equal(still.untransformed(X), -X)
    mixed = Compose([frozen(Add()), Scale()])
    assert mixed.alpha.names == ("scale_0", "scale_1")
    alpha, beta = mixed.sample(jax.random.key(1), 5)
    ((inner, offset), none) = beta[0][:2], beta[1]
    assert none is None
    plain = Add().apply(X, inner, offset)
    np.testing.assert_allclose(mixed.apply(X, alpha, beta), Scale().apply(plain, alpha, None))


def test_penalty_of_nothing_is_nothing(no_shape_checks):
    still = Compose([frozen(Add()), frozen(Scale())])
    alpha, beta = still.sample(jax.random.key(0), 5)
    assert alpha.shape == (5, 0)
    represent = lambda alpha: still.apply(X, alpha, beta).reshape(5, -1)[:, :3]  # noqa: E731
    assert moments_penalty(represent, alpha, still.alpha, np.ones((5, 3), np.float32)) == 0


def test_penalty_takes_a_product_and_only_what_is_not_frozen(no_shape_checks):
    """Exact moments of a LogUniform alpha against Gauss quadrature over its logarithm."""
    mixed = Compose([frozen(Add()), Scale()])
    alpha, beta = mixed.sample(jax.random.key(0), 5)
    weights = np.random.default_rng(1).normal(size=(48, 3)).astype(np.float32)
    represent = lambda alpha: jnp.tanh(mixed.apply(X, alpha, beta).reshape(5, -1) @ weights / 9)  # noqa: E731
    ours = exact_penalty(represent, alpha, mixed.alpha)

    def unit(alpha):
        z = represent(alpha)
        return z / jnp.linalg.norm(z, axis=1, keepdims=True)

    jacobian = jax.jacobian(unit)(alpha)[np.arange(5), :, np.arange(5)]
    nodes, node_weights = np.polynomial.legendre.leggauss(20)
    grids = [np.sqrt(a * b) * (b / a) ** (nodes / 2) for a, b in ((0.5, 2.0), (1.0, 1.5))]
    total = 0.0
    for first, u in zip(grids[0], node_weights / 2, strict=True):
        for second, v in zip(grids[1], node_weights / 2, strict=True):
            moved = jacobian @ (np.array([first, second]) - np.asarray(alpha))[..., None]
            total += u * v * (np.asarray(moved) ** 2).sum(axis=(1, 2)).mean()
    np.testing.assert_allclose(ours, total, rtol=1e-4)


def test_sometimes_keeps_alpha_and_leaves_pictures_plain():
    rarely = Sometimes(Scale(), 0.3)
    alpha, (coins, rest) = rarely.sample(jax.random.key(0), 4000)
    assert rest is None
    assert abs(np.mean(coins) - 0.3) < 4 * np.sqrt(0.21 / 4000)
    assert abs(np.corrcoef(np.asarray(coins, float), alpha[:, 0])[0, 1]) < 5 / np.sqrt(4000)
    alpha, coins = alpha[:5], np.array([True, False, True, False, False])
    result = np.asarray(rarely.apply(X, alpha, (coins, None)))
    np.testing.assert_array_equal(result[coins], Scale().apply(X, alpha, None)[coins])
    np.testing.assert_array_equal(result[~coins], -X[~coins])
    gradient = jax.grad(lambda a: rarely.apply(X, a, (coins, None)).sum())(alpha)
    assert not np.asarray(gradient)[~coins].any()
    assert np.asarray(gradient)[coins].all()


def test_what_a_composition_takes_is_what_its_first_part_takes():
    assert base.takes_images(BOTH)
    drawn = Compose([SpirographTransform(), Scale()])
    assert not base.takes_images(drawn)
    assert not base.takes_images(frozen(SpirographTransform()))


# Shifts ----------------------------------------------------------------------------------------


def test_component_shifts_move_one_component():
    regime, shifted = base.shifts(Add(Box([1.0, 5.0], [3.0, 5.0], ["amount", "fixed"])))
    sd = 1 / np.sqrt(3)
    assert list(shifted) == [
        *[f"amount_shift={s:+.3g}" for s in (-sd, -sd / 2, sd / 2, sd)],
        "amount_spread=1.5",
        "amount_spread=2",
    ]
    alpha, beta = regime.sample(jax.random.key(0), 50)
    for name, other in shifted.items():
        moved, same = other.sample(jax.random.key(0), 50)
        np.testing.assert_array_equal(same, beta)
        np.testing.assert_array_equal(moved[:, 1], alpha[:, 1])
        amount = float(name.split("=")[1])
        moves_mean = name.startswith("amount_shift")
        expected = alpha[:, 0] + amount if moves_mean else 2 + amount * (alpha[:, 0] - 2)
        np.testing.assert_allclose(moved[:, 0], expected, atol=1e-3)
        draws = other.alpha.sample(jax.random.key(1), 4000)
        error = 5 * np.sqrt(other.alpha.variance[0] / 4000)
        assert abs(np.mean(draws[:, 0]) - other.alpha.mean[0]) < error
        np.testing.assert_allclose(np.var(draws[:, 0]), other.alpha.variance[0], rtol=0.1)


def test_shifts_of_a_composition_move_one_part():
    colour = ImageTransform(4, (0.5,) * 3, (0.2,) * 3)
    regime, shifted = base.shifts(Compose([Add(), colour]))
    assert regime.transforms[1] == colour.shifts()[0]
    assert shifted["strength=0.25"].transforms[0] == Add()
    assert shifted["strength=0.25"].transforms[1].strength == 0.25
    assert shifted["amount_spread=2"].transforms[1] == regime.transforms[1]
    assert len(shifted) == 6 + 9
    twice = base.shifts(Compose([Add(), Add()]))[1]
    assert "amount_spread=2" in twice
    assert "1_amount_spread=2" in twice
    still = base.shifts(frozen(colour))[1]
    assert still["strength=1"] == frozen(colour.shifts()[1]["strength=1"])


# Mistakes --------------------------------------------------------------------------------------


def test_a_part_without_a_plain_version_is_named():
    with pytest.raises(
        NoPlainVersion, match=r"part 1 \(SpirographTransform\).*: Spirograph has no"
    ):
        Compose([Add(), SpirographTransform()]).untransformed(X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Compose([]), "no transforms: give at least one"),
        (lambda: Compose([Add(), 3]), "Compose was given 3: every part needs alpha"),
        (
            lambda: BOTH.apply(X, np.ones((5, 3)), (None,) * 3),
            r"shape \(5, 3\), not \[n, 4\].*\(amount, scale_0, scale_1, amount_2\)",
        ),
        (lambda: frozen(Scale()).apply(X, np.ones((5, 2)), (None,) * 2), r"not \[n, 0\]"),
        (lambda: Sometimes(Add(), 1.2), "probability is 1.2: give a number from 0 to 1"),
    ],
)
def test_mistakes_are_named(no_shape_checks, call, message):
    with pytest.raises(ValueError, match=message):
        call()
