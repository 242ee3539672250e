"""Chunks: the loss of the whole batch with the activations of a part, and its exact gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.training import views
from invclr_jax.training.methods import METHODS
from invclr_jax.training.step import create_state
from tests.training.small import rows, small_config, small_learner


def gradient(config):
    learner = small_learner(config)
    state, x = create_state(learner), jnp.asarray(rows()["image"][:16])
    loss = METHODS[config.method].loss
    value = jax.jit(
        lambda params: jax.value_and_grad(loss, has_aux=True)(
            params, state, x, jax.random.key(5), learner, True
        )
    )
    return value(state.params)


@pytest.mark.parametrize("method", ["simclr", "moco"])
@pytest.mark.parametrize("estimator", ["sampled", "forward", "finite"])
def test_gradient_equals_the_unchunked_one(x64, method, estimator):
    """Batch norm is per chunk in both: four chunks, or four groups of the whole batch."""
    options = {"model.dtype": "float64", "penalty.estimator": estimator, "batch_norm.groups": 4}
    options |= {"batch_norm.scope": "groups", "moco.shuffle": False, "penalty.clip": 1e9}
    (whole, outcome), grads = gradient(small_config(method=method, **options))
    (parts, chunked), chunked_grads = gradient(small_config(method=method, chunks=4, **options))
    np.testing.assert_allclose(parts, whole, rtol=1e-12)
    for mine, theirs in zip(
        jax.tree.leaves((chunked_grads, chunked)), jax.tree.leaves((grads, outcome)), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


def test_memory_is_that_of_a_chunk():
    """Temporary memory of the gradient falls with the number of chunks."""

    def temporary(chunks):
        learner = small_learner(small_config(chunks=chunks, **{"batch_size": 256}))
        state, x = create_state(learner), jnp.asarray(rows(n=256)["image"])
        loss = METHODS["simclr"].loss
        grad = jax.jit(
            lambda params: jax.grad(loss, has_aux=True)(
                params, state, x, jax.random.key(0), learner, False
            )[0]
        )
        return grad.lower(state.params).compile().memory_analysis().temp_size_in_bytes

    assert temporary(8) < temporary(1) / 3


def test_map_chunks_keeps_the_order_and_averages():
    x = np.arange(12.0, dtype=np.float32)
    outputs, mean = views.map_chunks(lambda part: (part * 2, part.mean()), x, 3)
    np.testing.assert_array_equal(outputs, 2 * x)
    np.testing.assert_allclose(mean, x.mean())
