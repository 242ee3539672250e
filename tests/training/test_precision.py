"""bfloat16 arithmetic: parameters, statistics and losses stay in float32, values stay near."""

import jax
import jax.numpy as jnp
import numpy as np

from invclr_jax.training.step import create_state
from tests.training.small import rows, small_config, small_recipe
from tests.training.test_chunks import gradient_of


def loss_and_gradient(dtype):
    recipe = small_recipe(small_config(**{"model.dtype": dtype, "penalty.estimator": "forward"}))
    state, x = create_state(recipe), jnp.asarray(rows()["image"][:16])
    return gradient_of(recipe, state, x, True)(state.params)


def test_bfloat16_is_near_float32():
    (full, outcome), grads = loss_and_gradient("float32")
    (half, half_outcome), half_grads = loss_and_gradient("bfloat16")
    np.testing.assert_allclose(half, full, rtol=0.02)
    assert half.dtype == jnp.float32
    z, half_z = (np.asarray(o.representation) for o in (outcome, half_outcome))
    assert half_z.dtype == np.float32
    assert 1e-4 < np.abs(half_z - z).max() / np.abs(z).max() < 0.05, "is it really half precision?"
    for tree in (half_grads, half_outcome.statistics):
        assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(tree))
    flat, half_flat = (
        np.concatenate([np.ravel(g) for g in jax.tree.leaves(t)]) for t in (grads, half_grads)
    )
    cosine = flat @ half_flat / np.linalg.norm(flat) / np.linalg.norm(half_flat)
    assert cosine > 0.95
