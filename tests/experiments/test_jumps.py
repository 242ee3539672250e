"""What the derivative sees: a smooth map against one with plateaus."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from experiments.jumps import STEPS, Network, both_orders, largest_step
from invclr_jax.transforms.base import Box


class Identity:
    """A picture is x with alpha beside it."""

    alpha = Box(np.zeros(1), np.ones(1))

    def apply(self, x, alpha, beta):
        return jnp.concatenate([x, alpha], 1)


class Curve(nn.Module):
    """z on the unit circle, turned by alpha: steadily, or at once where alpha passes one half."""

    jumps: bool

    @nn.compact
    def __call__(self, x, train=False):
        alpha = x[:, -1]
        angle = jnp.where(alpha > 0.5, 1.0, 0.0) if self.jumps else alpha
        return jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1)


def measured(jumps):
    network = Network(Curve(jumps), Identity(), train=False)
    x, keys = jnp.zeros((64, 1)), jax.random.split(jax.random.key(0), 64)
    orders = both_orders(network, "unit", {}, x, keys)
    return {k: float(v.mean()) for k, v in orders.items()} | {
        "step": float(largest_step(network, {}, x, keys[0]))
    }


def test_a_smooth_map_is_seen_and_takes_equal_steps():
    found = measured(jumps=False)
    # V of an angle uniform on [0, 1] is near its variance, 1/12.
    assert abs(found["first_order"] - 1 / 12) < 0.005
    assert abs(found["finite"] - 1 / 12) < 0.01
    assert abs(found["step"] - 1 / STEPS) < 1e-3


def test_a_jump_is_not_seen_by_the_derivative():
    found = measured(jumps=True)
    assert found["first_order"] == 0
    assert found["finite"] > 0.1
