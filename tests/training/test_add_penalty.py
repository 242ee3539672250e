"""How the penalty enters the loss: lambda, its ramp, the clip, and `every`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.training.small import STEPS_PER_EPOCH, small_config, small_recipe


def added(step, value, **options):
    """What the penalty adds to a contrastive loss of 2, by the step."""
    keys = {f"penalty.{name}": option for name, option in options.items()}
    method = small_recipe(small_config(**keys)).method
    loss, terms = jax.jit(
        lambda step, value: method.add_penalty("contrastive", jnp.float32(2), value, step, True)
    )(step, value)
    assert terms["penalty"] == value
    assert terms["contrastive"] == 2
    return float(loss) - 2


@pytest.mark.parametrize("step", [0, 7, 1000])
def test_without_a_ramp_the_weight_is_constant(step):
    np.testing.assert_allclose(added(step, 0.5, weight=0.2), 0.1, rtol=1e-5)


@pytest.mark.parametrize(("step", "share"), [(0, 0.0), (5, 0.2), (20, 0.8), (25, 1.0), (99, 1.0)])
def test_a_ramp_is_a_straight_line_up_to_the_weight(step, share):
    ramp = 25 / STEPS_PER_EPOCH
    np.testing.assert_allclose(
        added(step, 0.5, weight=2.0, ramp_epochs=ramp), share, rtol=1e-5, atol=1e-6
    )


def test_the_clip_and_every_multiply_what_the_weight_does():
    np.testing.assert_allclose(added(3, 5.0, weight=0.1, clip=1.5, every=4), 0.6, rtol=1e-5)


def test_a_step_without_the_penalty_has_none():
    method = small_recipe(small_config()).method
    loss, terms = method.add_penalty("contrastive", jnp.float32(2), jnp.float32(9), 0, False)
    assert loss == 2
    assert set(terms) == {"contrastive"}
