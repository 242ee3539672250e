"""L-BFGS where it could go wrong: line search, scales, saturation, rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from invclr_jax.evaluation import probes
from invclr_jax.evaluation.linear_solver import lbfgs, preconditioner
from invclr_jax.evaluation.linear_solver.line_search import ENOUGH, search
from invclr_jax.evaluation.metrics import cross_entropy
from tests.evaluation.test_probes import softmax_objective

FUNCTIONS = {
    "near": lambda t: (t - 0.9) ** 2,
    "short": lambda t: (t - 1e-3) ** 2,
    "long": lambda t: (t - 300.0) ** 2,
    "overflowing": lambda t: jnp.exp(1000 * t) - 3000 * t,
    # Falls with slope -1 to 0.1, then rises with slope 0.2: at t = 1 flat enough, but above.
    "gentle far side": lambda t: jnp.where(t < 0.1, -t, -0.1 + 0.2 * (t - 0.1)) + 1e-3 * t**2,
    "quartic": lambda t: (t - 2) ** 4,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_line_search(name, precision):
    function = FUNCTIONS[name]
    along = jax.value_and_grad(function)
    value, slope = along(jnp.zeros((), precision))
    t, found = jax.jit(lambda v, s: search(along, v, s))(value, slope)
    assert t.dtype == found.dtype == precision
    assert found == pytest.approx(float(function(t)))
    assert found < value
    if name != "gentle far side":  # a corner has no small slope
        assert abs(jax.grad(function)(t)) <= ENOUGH * abs(slope)


def test_line_search_gives_up_without_harm():
    """A function that is not finite anywhere but at 0 is left where it is."""
    t, value = search(lambda t: (t * jnp.nan, t * jnp.nan), jnp.array(3.0), jnp.array(-1.0))
    assert (t, value) == (0, 3)


def problem(seed=0, n=200, f=8, classes=3, noise=1.0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    x = 2 * rng.normal(size=(classes, f))[labels] + noise * rng.normal(size=(n, f))
    return x, labels


def spoiled(x):
    """The same features in clothes that slow down or break a plain L-BFGS."""
    rng = np.random.default_rng(1)
    mixed = x @ np.linalg.qr(rng.normal(size=(8, 8)))[0]
    return {
        "plain": x,
        "unequal scales": x * np.logspace(-3, 3, 8),
        "correlated": mixed * np.logspace(-2, 2, 8) @ np.linalg.qr(rng.normal(size=(8, 8)))[0],
        "far from zero": x + 100,
        "collinear": np.concatenate([x[:, :7], x[:, :1] - x[:, 1:2]], axis=1),
        "dead": np.concatenate([x[:, :7], np.zeros((200, 1))], axis=1),
        "constant": np.concatenate([x[:, :7], np.full((200, 1), 5.0)], axis=1),
    }


@pytest.mark.parametrize("kind", spoiled(problem()[0]))
def test_converges_for_awkward_features(kind):
    x, labels = problem(noise=3.0)
    x = spoiled(x)[kind].astype(np.float32).astype(np.float64)
    l2 = 1e-4
    with jax.enable_x64(True):
        exact = probes.fit_classifier(x, labels, num_classes=3, l2=l2)
    rough = probes.fit_classifier(x, labels, num_classes=3, l2=l2)
    assert exact.grad_norm < 1e-10
    # Many times fewer than a method that has to learn the scales by itself.
    assert exact.iterations < 50
    assert rough.iterations < 75
    loss, _ = softmax_objective(x, labels, rough.weights, rough.bias, l2)
    assert loss - exact.loss < 1e-7


@pytest.mark.usefixtures("x64")
def test_scipy_finds_no_lower_loss():
    x, labels = problem()
    l2 = 1e-4

    def loss(flat):
        w = jnp.asarray(flat).reshape(9, 3)
        return cross_entropy(x @ w[:-1] + w[-1:], labels) + l2 * jnp.sum(w[:-1] ** 2)

    theirs = minimize(
        jax.jit(jax.value_and_grad(loss)), np.zeros(27), jac=True, method="BFGS", tol=1e-10
    )
    fit = probes.fit_classifier(x, labels, num_classes=3, l2=l2)
    assert fit.loss <= theirs.fun + 1e-13


@pytest.mark.usefixtures("x64")
def test_separable_classes_take_further_preconditioners(monkeypatch):
    """Once most rows are fitted the covariance of the others counts."""
    rng = np.random.default_rng(0)
    x, labels = problem(n=500, noise=0.5)
    x = np.maximum(x @ rng.normal(size=(8, 20)), 0)
    rows = x, labels, np.full(500, 1 / 500)
    shared = np.zeros((21, 3)), 1e-6, 1e-10, 1000
    arguments = jax.tree.map(jnp.asarray, (rows, shared))
    options = {"loss": probes._CLASSIFICATION, "memory": 10, "axis": None}

    def solve():
        # A new function each time: compiled functions are remembered.
        solver = jax.jit(lambda *a: lbfgs._minimise.__wrapped__(*a, **options))
        return solver(*arguments)

    several = solve()
    monkeypatch.setattr(lbfgs, "REBUILD", 1e30)  # built once, as the first weight is infinite
    once = solve()
    assert several.grad_norm <= 1e-10
    assert several.iterations < 0.8 * once.iterations


def test_rounding_ends_the_loop():
    """A gradient norm out of reach stops at the best that float32 can do, not at the limit."""
    x, labels = problem()
    fit = probes.fit_classifier(x, labels, num_classes=3, l2=1e-4, tolerance=1e-30)
    assert fit.iterations < 150
    assert fit.grad_norm < 5e-6  # the rounding of single sums, which differs between processors
    assert np.isfinite(fit.loss)


@pytest.mark.usefixtures("x64")
def test_preconditioner_is_the_inverse_of_the_weighted_moments():
    rng = np.random.default_rng(0)
    n = preconditioner.ROWS + 37  # two slices that overlap
    x, w, l2 = rng.normal(size=(n, 4)) + 3, rng.uniform(size=n), 0.05
    augmented = np.concatenate([x, np.ones((n, 1))], axis=1)
    matrix = (augmented * w[:, None]).T @ augmented / n
    matrix[:4, :4] += 2 * l2 * np.eye(4)
    gradient = jnp.asarray(rng.normal(size=(5, 2)))
    built = jax.jit(preconditioner.build)(jnp.asarray(x), jnp.asarray(w / n), jnp.asarray(l2))
    np.testing.assert_allclose(built(gradient), np.linalg.solve(matrix, gradient), rtol=1e-9)


def test_preconditioner_of_a_singular_matrix_is_finite():
    x = jnp.ones((20, 3)) * jnp.arange(20.0)[:, None]
    built = preconditioner.build(x, jnp.ones(20) / 20, jnp.zeros(()))
    direction = built(jnp.ones((4, 2)))
    assert jnp.isfinite(direction).all()
    assert jnp.vdot(direction, jnp.ones((4, 2))) > 0
