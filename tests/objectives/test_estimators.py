"""Derivatives against finite differences, estimators against each other, and edge cases."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.objectives import penalty
from invclr_jax.objectives.derivatives import moment_directions, pull_back
from invclr_jax.objectives.features import FEATURES, apply_feature
from invclr_jax.transforms.base import Box
from tests.objectives.cases import Tiny, quick_jit
from tests.reference import relative_error

STEP = 1e-5


def central(function, point, direction):
    """Derivative along a direction by central differences, error of order STEP²."""
    ahead, behind = (
        jax.tree.map(lambda p, d, s=sign: p + s * STEP * d, point, direction) for sign in (1, -1)
    )
    return (function(ahead) - function(behind)) / (2 * STEP)


@pytest.mark.parametrize("feature", FEATURES)
def test_g_is_the_derivative_of_the_summed_projection(x64, feature):
    """With batch norm every F_k depends on every alpha_i, and g_i counts them all."""
    tiny = Tiny(batch_norm=True)
    e = np.random.default_rng(1).choice([-1.0, 1.0], (8, 5))
    z, pull, aux = pull_back(lambda a: (tiny.closure()(a), "aux"), jnp.asarray(tiny.alpha), feature)
    assert aux == "aux"
    assert relative_error(z, tiny.closure()(tiny.alpha)) < 1e-15

    @quick_jit
    def projection(alpha):
        return jnp.sum(e * apply_feature(tiny.closure()(alpha), feature))

    basis = np.eye(tiny.alpha.size).reshape(-1, *tiny.alpha.shape)
    expected = [central(projection, tiny.alpha, direction) for direction in basis]
    assert relative_error(pull(jnp.asarray(e)).ravel(), expected) < 1e-8


@pytest.mark.parametrize("feature", FEATURES)
def test_gradient_in_the_weights_is_the_second_derivative(x64, feature):
    tiny, rng = Tiny(batch_norm=True, a=2), np.random.default_rng(2)
    e, signs = rng.choice([-1.0, 1.0], (8, 5)), rng.choice([-1.0, 1.0], 8)
    alpha_prime = rng.uniform(tiny.box.low, tiny.box.high, (2, *tiny.alpha.shape))
    alpha, box, direct = tiny.alpha, tiny.box, signs[:, None] * (alpha_prime[0] - tiny.alpha)

    def penalties(params):
        represent = tiny.closure(params)
        return jnp.stack([
            penalty.sampled_penalty(represent, alpha, alpha_prime, e, feature=feature),
            penalty.moments_penalty(represent, alpha, box, e, feature=feature),
            penalty.forward_penalty(represent, alpha, direct, feature=feature),
            penalty.exact_penalty(represent, alpha, box, feature=feature),
            penalty.exact_penalty(represent, alpha, box, feature=feature, signs=signs),
            penalty.finite_penalty(represent(alpha), represent(alpha_prime[0]), feature=feature),
        ])  # fmt: skip

    direction = jax.tree.map(lambda p: rng.normal(size=p.shape), tiny.params)
    both = quick_jit(lambda params: (penalties(params), jax.jacrev(penalties)(params)))
    gradients = both(tiny.params)[1]
    slope = sum(np.tensordot(gradients[name], direction[name], 2) for name in direction)
    by_differences = central(lambda params: both(params)[0], tiny.params, direction)
    assert relative_error(slope, by_differences) < 1e-7


@pytest.mark.parametrize("bounds", [([0.0, -2, 1], [1.0, 3, 1.5]), ([0.0, 2, 1], [1.0, 2, 4])])
def test_moment_directions_have_the_second_moment(x64, bounds):
    box = Box(*map(np.array, bounds))
    alpha = np.random.default_rng(0).normal(size=(5, 3))  # outside the box too
    directions = moment_directions(box, jnp.asarray(alpha))
    assert len(directions) <= box.size
    delta = box.mean - alpha
    expected = np.diag(box.variance) + delta[:, :, None] * delta[:, None]
    assert relative_error(np.einsum("rki,rkj->kij", directions, directions), expected) < 1e-12


@pytest.mark.parametrize("feature", FEATURES)
def test_exact_is_the_trace_over_all_samples(x64, feature):
    tiny = Tiny(batch_norm=True)
    whole = quick_jit(jax.jacrev(lambda alpha: apply_feature(tiny.closure()(alpha), feature)))(
        tiny.alpha
    )
    delta = tiny.box.mean - tiny.alpha
    spread = np.einsum("kcij,j->", whole**2, tiny.box.variance)
    mean = np.sum(np.einsum("kcij,ij->kci", whole, delta) ** 2)
    value = penalty.exact_penalty(tiny.closure(), tiny.alpha, tiny.box, feature=feature)
    assert relative_error(value, (spread + mean) / len(tiny.alpha)) < 1e-12


def test_signs_change_nothing_where_samples_are_apart(x64):
    tiny = Tiny(batch_norm=False)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], 8)
    exact = functools.partial(penalty.exact_penalty, tiny.closure(), tiny.alpha, tiny.box)
    assert relative_error(exact(signs=signs), exact()) < 1e-12
    with_norm = Tiny(batch_norm=True)
    exact = functools.partial(penalty.exact_penalty, with_norm.closure(), tiny.alpha, tiny.box)
    assert relative_error(exact(signs=signs), exact()) > 1e-3


@pytest.mark.parametrize(
    ("batch_norm", "feature"),
    [(False, "unit"), (True, "unit"), (True, "centred"), (False, "relative"), (True, "relative")],
)
def test_estimators_are_unbiased(x64, batch_norm, feature):
    """Over many draws each mean lies within four standard errors of the expectation."""
    tiny = Tiny(batch_norm)

    @quick_jit
    @jax.vmap
    def draws(key):
        return {
            estimator: estimate(tiny, key, estimator, feature)
            for estimator in ("sampled", "moments", "forward", "exact")
        }

    exact = penalty.exact_penalty(tiny.closure(), tiny.alpha, tiny.box, feature=feature)
    number = 4000
    for estimator, values in draws(jax.random.split(jax.random.key(5), number)).items():
        error = np.std(values) / np.sqrt(number)
        assert abs(np.mean(values) - exact) < 4 * error + 1e-9 * exact, estimator
        assert error < 0.05 * exact, estimator  # else the line above says nothing


def estimate(tiny, key, estimator, feature, **options):
    term = penalty.Penalty(
        estimator=penalty.make_estimator(estimator, num_samples=3), feature=feature
    )
    draws = term.estimator.draw(key, 8, box=tiny.box, dim=5)
    represent = lambda alpha: (tiny.closure()(alpha), None)  # noqa: E731
    return term(represent, tiny.alpha, draws, box=tiny.box, **options)[0]


def test_finite_is_twice_the_conditional_variance(x64):
    """|h(alpha) - h(alpha')|² over independent alpha and alpha' is 2V, Eq. 6 by the definition."""
    tiny = Tiny(batch_norm=False)

    @quick_jit
    @jax.vmap
    def draws(key):
        keys = jax.random.split(key)
        z, z_prime = (tiny.closure()(tiny.box.sample(k, 8)) for k in keys)
        return penalty.finite_penalty(z, z_prime), apply_feature(z, "unit")

    values, h = draws(jax.random.split(jax.random.key(0), 4000))
    variance = np.mean(np.sum(np.var(h, axis=0, ddof=1), axis=-1))
    assert abs(np.mean(values) - 2 * variance) < 0.05 * variance


@pytest.mark.parametrize("feature", FEATURES)
def test_finite_shares_the_statistics_of_both_batches(x64, feature):
    z, z_prime = np.random.default_rng(0).normal(size=(2, 8, 5)) + 1
    both = np.stack([z, z_prime])
    if feature != "unit":
        both = both - both.mean((0, 1))
    length = np.linalg.norm(both, axis=-1, keepdims=True)
    h, h_prime = both / (np.sqrt(np.mean(length**2)) if feature == "relative" else length)
    expected = np.mean(np.sum((h - h_prime) ** 2, axis=-1))
    value = penalty.finite_penalty(z, z_prime, feature=feature)
    assert relative_error(value, expected) < 1e-12


def test_finite_tends_to_forward(x64):
    tiny = Tiny(batch_norm=True)
    move = 1e-5 * np.random.default_rng(0).normal(size=tiny.alpha.shape)
    z, z_prime = (tiny.closure()(tiny.alpha + sign * move / 2) for sign in (1, -1))
    forward = penalty.forward_penalty(tiny.closure(), tiny.alpha, move)
    assert relative_error(penalty.finite_penalty(z, z_prime), forward) < 1e-6


@pytest.mark.parametrize("estimator", penalty.ESTIMATORS)
def test_public_penalty_is_draw_and_estimate(x64, estimator):
    tiny, key = Tiny(batch_norm=False), jax.random.key(3)
    value = penalty.penalty(
        tiny.closure(), tiny.alpha,
        box=tiny.box, key=key, estimator=estimator, num_samples=3, feature="unit",
    )  # fmt: skip
    assert relative_error(value, estimate(tiny, key, estimator, "unit")) < 1e-12


@pytest.mark.parametrize("feature", FEATURES)
def test_offset_and_scale(x64, feature):
    """A common offset satisfies the unit penalty, and only that one."""
    plain, moved = Tiny(batch_norm=True), Tiny(batch_norm=True, offset=100.0)
    represent, offset = plain.closure(), moved.closure()
    exact = quick_jit(
        lambda factor, far: penalty.exact_penalty(
            lambda alpha: factor * jnp.where(far, offset(alpha), represent(alpha)),
            plain.alpha, plain.box, feature=feature,
        )
    )  # fmt: skip
    value = exact(1.0, False)
    assert relative_error(exact(7.0, False), value) < 1e-10
    if feature == "unit":
        assert exact(1.0, True) < 1e-2 * value
    else:
        assert relative_error(exact(7.0, True), value) < 1e-8


@pytest.mark.parametrize("feature", FEATURES)
def test_zero_representation_is_finite(feature):
    tiny = Tiny(batch_norm=False)
    x = np.asarray(tiny.x, np.float32)
    alpha = np.asarray(tiny.alpha, np.float32)

    @quick_jit
    @jax.value_and_grad
    def total(params, key):
        def represent(alpha):
            z = tiny.represent(params, x, alpha)
            return z.at[2].set(0.0), None

        values = {}
        for estimator in penalty.ESTIMATORS:
            make = penalty.make_estimator(estimator, num_samples=2)
            term = penalty.Penalty(estimator=make, feature=feature)
            noise = make.draw(key, 8, box=tiny.box, dim=5)
            values[estimator], _, _ = term(represent, alpha, noise, box=tiny.box)
        return sum(values.values())

    params = jax.tree.map(lambda p: jnp.asarray(p, jnp.float32), tiny.params)
    value, gradient = total(params, jax.random.key(0))
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    value, gradient = total(jax.tree.map(jnp.zeros_like, params), jax.random.key(0))
    assert value == 0
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(gradient))


def test_clip_passes_nan_and_cuts_the_gradient():
    value_and_slope = jax.value_and_grad(penalty.clip_from_above)
    assert value_and_slope(2.0, 1.0) == (1.0, 0.0)
    assert value_and_slope(0.5, 1.0) == (0.5, 1.0)
    assert value_and_slope(3.0, np.inf) == (3.0, 1.0)
    assert np.isnan(penalty.clip_from_above(np.nan, 1.0))
