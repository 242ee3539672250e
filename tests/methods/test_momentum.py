"""The slow network: its schedule, and its published order of updates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.methods.byol import BYOL
from invclr_jax.training.step import create_state, train_step
from tests.methods.test_objectives import DATA, recipe_for
from tests.own import Head, PlainNet, Shade
from tests.training.small import rows


def made(**options):
    parts = {"encoder": PlainNet(), "head": Head(), "predictor": Head(), "transform": Shade()}
    return BYOL(**parts | options)


def test_half_a_cosine(x64):
    method = made(momentum=0.9, final_momentum=1.0, total_steps=8)
    expected = [1 - 0.1 * (np.cos(np.pi * k / 8) + 1) / 2 for k in range(9)]
    np.testing.assert_allclose([method.rate(k) for k in range(9)], expected, rtol=1e-14)
    assert method.rate(0) == pytest.approx(0.9)
    assert method.rate(100) == 1


def test_a_constant_needs_no_length():
    assert made(momentum=0.97, final_momentum=0.97).rate(5) == pytest.approx(0.97)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"momentum": 1.2}, "momentum is 1.2: use a number from 0 to 1"),
        ({"momentum": 0.9}, "momentum goes from 0.9 to 1.0 over the run: give total_steps"),
    ],
)
def test_mistakes(options, words):
    with pytest.raises(ValueError, match=words):
        made(**options)


def test_it_follows_the_parameters_after_each_step(x64):
    """slow_k+1 = m_k slow_k + (1 - m_k) params_k+1, from slow_0 = params_0."""
    recipe = recipe_for("byol", **{"views.number": 2, "num_steps": 4, "byol.momentum": 0.5})
    state, table = create_state(recipe), jax.tree.map(jnp.asarray, rows(DATA))
    kernel = lambda tree: np.asarray(tree["encoder"]["Dense_0"]["kernel"])  # noqa: E731
    step = jax.jit(lambda state, i: train_step(recipe, False, state, table, i, recipe.key))
    slow = kernel(state.params)
    for k in range(3):
        assert k == int(state.step)
        state, _ = step(state, jnp.arange(16))
        np.testing.assert_allclose(kernel(state.method["params"]), slow, rtol=1e-12)
        rate = 1 - 0.5 * (np.cos(np.pi * k / 4) + 1) / 2
        assert np.abs(kernel(state.params) - slow).max() > 1e-6
        slow = rate * slow + (1 - rate) * kernel(state.params)
