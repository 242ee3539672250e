"""The transformation that the documentation prints, under jit, grad, vmap and the penalty."""

import pathlib
import re
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from invclr_jax.objectives.penalty import exact_penalty
from invclr_jax.transforms.base import Transform, alpha_names
from tests.reference import relative_error

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "own_transform.md"
X = np.random.default_rng(0).integers(0, 256, (3, 9, 11, 3), np.uint8)


@pytest.fixture(scope="module")
def blur():
    """The object that the page's first Python block defines."""
    module = types.ModuleType("own_transform")
    exec(re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1], module.__dict__)
    return module.Blur()


def test_it_is_a_transform(blur):
    assert isinstance(blur, Transform)
    assert alpha_names(blur) == ("blur",)
    np.testing.assert_allclose(blur.untransformed(X), X / 255, rtol=1e-6)


def test_it_blurs(blur):
    """Against SciPy's Gaussian filter, whose borders differ: the middle pixel is far from them."""
    x = np.zeros((1, 41, 41, 3))
    x[0, 15:25, 18:23] = 1
    alpha, beta = blur.sample(jax.random.key(0), 1)
    ours = jax.jit(blur.apply)(x, alpha, beta)[0]
    theirs = ndimage.gaussian_filter(x[0], sigma=(*np.repeat(alpha, 2), 0), truncate=8)
    np.testing.assert_allclose(ours[8:-8, 8:-8], theirs[8:-8, 8:-8], atol=1e-3)
    assert np.abs(ours - x[0]).max() > 0.01


def test_it_is_differentiable_twice(blur, x64):
    alpha = jnp.array([[0.5], [1.0], [1.9]])

    @jax.jit
    def value(alpha):
        return jnp.sin(7 * blur.apply(X, alpha, None)).sum(axis=(1, 2, 3))

    gradient = jax.jit(jax.grad(lambda a: value(a).sum()))
    first = (value(alpha + 1e-5) - value(alpha - 1e-5))[:, None] / 2e-5
    second = (gradient(alpha + 1e-5) - gradient(alpha - 1e-5)) / 2e-5
    assert relative_error(gradient(alpha), first) < 1e-7
    curvature = jax.jit(jax.grad(lambda a: gradient(a).sum()))(alpha)
    assert relative_error(curvature, second) < 1e-7


def test_the_penalty_is_that_of_finite_differences(blur, x64):
    """E_alpha'[(alpha' - alpha)²] |dh/dalpha|² with h = z/|z|, averaged over the pictures."""
    alpha = jnp.array([[0.5], [1.0], [1.9]])
    weights = np.random.default_rng(2).normal(size=(X[0].size, 5)) / 30

    def represent(alpha, weights=weights):
        return jnp.tanh(blur.apply(X, alpha, None).reshape(len(X), -1) @ weights)

    def unit(alpha):
        z = np.asarray(represent(alpha))
        return z / np.linalg.norm(z, axis=1, keepdims=True)

    derivative = (unit(alpha + 1e-5) - unit(alpha - 1e-5)) / 2e-5
    low, high = blur.alpha.low, blur.alpha.high
    spread = (high - low) ** 2 / 12 + ((low + high) / 2 - np.asarray(alpha)) ** 2
    expected = np.mean(spread[:, 0] * (derivative**2).sum(1))

    @jax.jit
    def loss(weights):
        return exact_penalty(
            lambda alpha: represent(alpha, weights), alpha, blur.alpha, feature="unit"
        )

    assert float(loss(weights)) == pytest.approx(expected, rel=1e-7)
    way = np.random.default_rng(3).normal(size=weights.shape)
    slope = (loss(weights + 1e-5 * way) - loss(weights - 1e-5 * way)) / 2e-5
    assert float((jax.grad(loss)(weights) * way).sum()) == pytest.approx(float(slope), rel=1e-6)


def test_it_is_mapped_over_keys(blur):
    def view(key):
        return blur.apply(X, *blur.sample(key, len(X)))

    keys = jax.random.split(jax.random.key(4), 3)
    views = jax.jit(jax.vmap(view))(keys)
    np.testing.assert_allclose(views, np.stack([view(key) for key in keys]), atol=1e-5)
    assert np.abs(views[0] - views[1]).max() > 0.01
