"""Chunks: the loss of the whole batch with the activations of a part, and its exact gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax import config as configuration
from invclr_jax.methods.chunks import map_chunks
from invclr_jax.training.step import create_state
from tests.training.small import rows, small_config, small_data, small_recipe


def gradient_of(recipe, state, x, penalised):
    """Params -> ((loss, outcome), gradient)."""

    def loss(params):
        return recipe.method.loss(
            params,
            state.statistics,
            state.method,
            x,
            step=jnp.int32(0),
            key=jax.random.key(5),
            penalised=penalised,
        )

    return jax.jit(jax.value_and_grad(loss, has_aux=True))


def gradient(config):
    recipe = small_recipe(config)
    state, x = create_state(recipe), jnp.asarray(rows()["image"][:16])
    return gradient_of(recipe, state, x, True)(state.params)


CASES = [(m, e) for m in ("simclr", "moco") for e in ("sampled", "forward", "finite")]
CASES += [(m, "forward") for m in ("byol", "simsiam", "barlow_twins", "emp")]


@pytest.mark.parametrize(("method", "estimator"), CASES)
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
        options = {"batch_size": 256, "batch_norm.scope": "per_chunk"}
        recipe = small_recipe(small_config(chunks=chunks, **options))
        state, x = create_state(recipe), jnp.asarray(rows(n=256)["image"])
        program = gradient_of(recipe, state, x, False).lower(state.params).compile()
        return program.memory_analysis().temp_size_in_bytes

    assert temporary(8) < temporary(1) / 3


def test_map_chunks_keeps_the_order_and_averages():
    x = np.arange(12.0, dtype=np.float32)
    outputs, mean = map_chunks(lambda part: (part * 2, part.mean()), x, 3)
    np.testing.assert_array_equal(outputs, 2 * x)
    np.testing.assert_allclose(mean, x.mean())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "statistics are those of the global batch"),
        ({"batch_norm.scope": "groups", "batch_norm.groups": 2}, r"\(2 groups\)"),
        (
            {
                "batch_norm.scope": "groups",
                "batch_norm.groups": 8,
                "penalty.feature": "relative",
            },
            "the feature 'relative' has statistics of the whole batch",
        ),
    ],
)
def test_chunks_that_would_change_statistics_are_refused(options, words):
    with pytest.raises(ValueError, match=f"(?s){words}.*config.model.remat"):
        small_config(chunks=4, **options)
    assert small_config(chunks=4, **options | {"batch_norm.scope": "per_chunk"}).chunks == 4


def test_remat_saves_memory_and_changes_nothing():
    """By its config key: less is kept for the backward pass.

    What is kept is counted where JAX keeps it: XLA's CPU compiler computes it once all the same.
    """

    def kept_and_gradient(remat):
        config = small_config(**{"model.remat": remat, "model.name": "resnet10"})
        dataset = small_data(n=16)
        config = configuration.describe(config, dataset)
        recipe = configuration.from_config(config, dataset, axis=None)
        state, x = create_state(recipe), jnp.asarray(rows()["image"][:16])

        def loss(params):
            options = {"step": jnp.int32(0), "key": jax.random.key(5), "penalised": False}
            return recipe.method.loss(params, state.statistics, state.method, x, **options)[0]

        kept = jax.eval_shape(lambda params: jax.vjp(loss, params)[1], state.params)
        return sum(leaf.size for leaf in jax.tree.leaves(kept)), jax.jit(jax.grad(loss))(
            state.params
        )

    (plain, expected), (saving, gradient) = kept_and_gradient(False), kept_and_gradient(True)
    assert saving < 0.5 * plain
    for mine, theirs in zip(*map(jax.tree.leaves, (gradient, expected)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
