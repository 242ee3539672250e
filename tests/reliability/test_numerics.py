"""Bad numbers in one sample are reported or kept out; half precision trains like single."""

import contextlib
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax import config as configuration
from invclr_jax.checkpoint import Checkpoints
from invclr_jax.data.order import batch_indices
from invclr_jax.objectives import penalty
from invclr_jax.training import loop, restore
from invclr_jax.training.step import create_state, train_step
from invclr_jax.transforms.base import Box
from tests.objectives.cases import quick_jit
from tests.training.small import rows, small_config, small_data, small_recipe, train_small

BOX = Box(low=np.array([0.0, -1.0]), high=np.array([1.0, 1.0]))


@pytest.mark.parametrize("estimator", penalty.ESTIMATORS)
def test_one_bad_sample_is_never_silent(estimator):
    """NaN and infinity make the value non-finite, which training refuses; zero stays finite."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(2, 4)).astype(np.float32)
    alpha = rng.uniform(0.1, 0.9, (6, 2)).astype(np.float32)

    def value(weights, factor, feature):
        def represent(alpha):  # sample 1 is spoilt
            return jnp.tanh(alpha @ weights) * jnp.ones((6, 1)).at[1].set(factor)

        options = {"box": BOX, "key": jax.random.key(0), "num_samples": 2, "feature": feature}
        return penalty.penalty(represent, alpha, estimator=estimator, **options)

    @quick_jit
    def slopes(weights, factor):
        slope = jax.value_and_grad(value)
        return {feature: slope(weights, factor, feature) for feature in penalty.FEATURES}

    for bad in (np.nan, np.inf, 0.0):
        for feature, (found, gradient) in slopes(weights, bad).items():
            assert np.isfinite(found) == np.isfinite(gradient).all() == (bad == 0), (feature, bad)
            if bad == 0:
                assert np.abs(gradient).max() > 0, "the other samples must still be penalised"


def test_training_refuses_a_bad_sample_and_keeps_the_state_before(tmp_path):
    overrides = {"num_steps": 6, "checkpoint.every_steps": 3, "log.every_steps": 2}
    overrides |= {"data.num_train": 64, "data.num_test": 16, "log.tensorboard": False}
    config = small_config(**overrides)
    dataset = configuration.load_data(config)
    factors = dataset.train.images.copy()
    factors[batch_indices(0, 3, 64, 16)[0]] = np.nan  # first seen in the fourth step
    spoilt = dataclasses.replace(dataset.train, images=factors)
    with pytest.raises(loop.NonFiniteError, match=r"at step 4; last good checkpoint: step 3"):
        train_small(config, tmp_path, dataset=dataclasses.replace(dataset, train=spoilt))
    with contextlib.closing(Checkpoints(tmp_path)) as checkpoints:
        assert checkpoints.steps() == [3]
        fresh = jax.eval_shape(lambda: create_state(small_recipe(config, dataset=dataset)))
        stored = checkpoints.restore(3, restore.parts(fresh))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(stored))


def losses(dtype, steps):
    """Each step's loss in a small run."""
    options = {"model.dtype": dtype, "penalty.estimator": "forward", "num_steps": steps}
    recipe = small_recipe(small_config(**options), dataset=small_data(n=256))
    table = jax.tree.map(jnp.asarray, rows(n=256))
    step_fn = jax.jit(lambda *args: train_step(recipe, True, *args))
    state, seen = create_state(recipe), []
    for step in range(steps):
        indices = jnp.asarray(batch_indices(0, step, 256, 16))
        state, metrics = step_fn(state, table, indices, recipe.key)
        seen.append(metrics["loss"])
    return np.array(seen)


@pytest.mark.slow
def test_bfloat16_trains_like_float32():
    full, half = losses("float32", 200), losses("bfloat16", 200)
    assert np.isfinite(half).all()
    assert np.abs(half - full).max() > 1e-4, "is it really half precision?"
    late, half_late = full[-50:].mean(), half[-50:].mean()
    assert abs(half_late - late) < 0.02 * late
    assert half_late < half[:10].mean() - 0.1, "is anything learnt?"
