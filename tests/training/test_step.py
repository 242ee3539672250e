"""How a step is traced, and where its random numbers come from."""

import dataclasses
import gc

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from invclr_jax import parallel
from invclr_jax.methods.base import Method, Outcome
from invclr_jax.training import state as state_module
from invclr_jax.training import step
from invclr_jax.transforms.spirograph import SpirographTransform
from tests.training.small import rows, small_config, small_recipe


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


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Noting(Method):
    """A method that keeps the keys it is given."""

    keys: list = dataclasses.field(default_factory=list)

    def init(self, key, images):
        self.keys.append(key)
        return {"w": jnp.ones(3)}, {}

    def init_state(self, params, statistics, key):
        self.keys.append(key)
        return {}

    def loss(self, params, statistics, state, x, *, step, key, penalised):
        self.keys.append(key)
        return params["w"].sum(), Outcome(statistics, state, x, {})


def test_no_key_serves_two_purposes():
    """Initialisation, the method's state and the steps draw from different keys."""
    method = Noting(encoder=nn.Dense(3), head=nn.Dense(3), transform=SpirographTransform())
    recipe = state_module.Recipe(method, optax.sgd(0.1), (8, 8, 3))
    state = step._fresh_state(recipe, recipe.key)
    for _ in range(3):
        state, _ = step.train_step(recipe, False, state, rows(), jnp.arange(16), recipe.key)
    keys = [*method.keys, *jax.random.split(recipe.key, 4), recipe.key]
    numbers = {tuple(np.asarray(jax.random.key_data(key)).tolist()) for key in keys}
    assert len(numbers) == len(keys) == 2 + 3 + 4 + 1
