"""How a step is traced."""

import gc

import jax
import jax.numpy as jnp
import pytest

from invclr_jax import parallel
from invclr_jax.training import step
from tests.training.small import small_config, small_recipe


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_collection_while_tracing(monkeypatch, enabled):
    seen = []

    def traced(recipe, penalised, state, rows, indices, key):
        seen.append(gc.isenabled())
        if len(seen) > 1:
            raise ValueError("no such step")
        return state, {}

    monkeypatch.setattr(step, "train_step", traced)
    devices = jax.local_devices()[:1]
    recipe = small_recipe(small_config(), axis=parallel.AXIS)
    step_fn = step.compile_steps(recipe, devices)
    (gc.enable if enabled else gc.disable)()
    try:
        step_fn(0, jnp.zeros((1, 2)), jnp.zeros((1, 3)), jnp.zeros((1, 4), int))
        assert gc.isenabled() == enabled
        with pytest.raises(ValueError, match="no such step"):
            step_fn(0, jnp.zeros((1, 5)), jnp.zeros((1, 3)), jnp.zeros((1, 4), int))
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
    assert seen == [False, False]
