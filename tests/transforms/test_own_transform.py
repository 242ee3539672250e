"""The README's own transformation, as printed there, under jit, grad, vmap and the penalty."""

import pathlib
import re
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from invclr_jax.objectives.penalty import penalty
from invclr_jax.transforms.base import Transform
from tests.reference import relative_error

ROOT = pathlib.Path(__file__).parents[2]
X = np.random.default_rng(0).integers(0, 256, (3, 9, 11, 3), np.uint8)


def block(path, heading):
    """The first Python block under a heading of a Markdown file."""
    section = (ROOT / path).read_text().split(heading, 1)[1]
    return re.search(r"```python\n(.*?)```", section, re.DOTALL).group(1)


@pytest.fixture(scope="module")
def blur():
    module = types.ModuleType("own_transform")
    exec(block("README.md", "## Your own transformation"), module.__dict__)
    return module.Blur()


def test_readme_and_guide_show_the_same():
    guide = block("docs/own_transform.md", "# Your own transformation")
    assert guide == block("README.md", "## Your own transformation")


def test_it_is_a_transform_of_twenty_lines(blur):
    assert isinstance(blur, Transform)
    code = block("README.md", "## Your own transformation").splitlines()
    assert sum(bool(line.strip()) for line in code) <= 20


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


def test_it_goes_through_the_penalty(blur):
    alpha, beta = blur.sample(jax.random.key(1), len(X))
    weights = np.random.default_rng(2).normal(size=(X[0].size, 5)) / 30

    @jax.jit
    def loss(weights):
        def represent(alpha):
            return jnp.tanh(blur.apply(X, alpha, beta).reshape(len(X), -1) @ weights)

        options = {"box": blur.alpha, "key": jax.random.key(3), "num_samples": 2}
        return sum(
            penalty(represent, alpha, estimator=e, **options) for e in ("sampled", "forward")
        )

    value, gradient = jax.value_and_grad(loss)(weights.astype(np.float32))
    assert value > 0
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).max() > 0


def test_it_is_mapped_over_keys(blur):
    def view(key):
        return blur.apply(X, *blur.sample(key, len(X)))

    views = jax.jit(jax.vmap(view))(jax.random.split(jax.random.key(4), 5))
    assert views.shape == (5, *X.shape)
    assert np.asarray(views).std(0).max() > 0.01
