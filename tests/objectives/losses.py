"""What every loss of a batch has to pass: gradient, devices, precision."""

import jax
import jax.numpy as jnp
import numpy as np

from invclr_jax.parallel import AXIS, mean_over_devices, shard_rows
from tests.reference import relative_error


def random_rows(*shape, seed=0):
    """Rows with different scales and offsets of the columns."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) * rng.uniform(0.3, 2, shape[-1]) + rng.normal(size=shape[-1])


def check_gradient(loss, *arrays, step=1e-6):
    """Against central differences in a random direction, for each argument."""
    gradients = jax.grad(loss, tuple(range(len(arrays))))(*arrays)
    rng = np.random.default_rng(9)
    for index, gradient in enumerate(gradients):
        direction = rng.normal(size=gradient.shape)
        ends = [
            loss(*(x + sign * step * direction * (i == index) for i, x in enumerate(arrays)))
            for sign in (1, -1)
        ]
        difference = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(np.sum(gradient * direction), difference, rtol=1e-6, atol=1e-8)


def check_devices(loss, *arrays):
    """Eight devices' mean loss, and gradients of the mean, against one device's."""
    argnums = tuple(range(len(arrays)))
    whole, gradients = jax.value_and_grad(lambda *x: loss(*x, axis=None), argnums)(*arrays)

    def on_device(*rows):
        local, shares = jax.value_and_grad(lambda *x: loss(*x, axis=AXIS), argnums)(*rows)
        return mean_over_devices(local, AXIS), shares

    # A row's gradient of the sum of eight local losses is eight times that of their mean.
    losses, shares = jax.pmap(on_device, axis_name=AXIS)(*(shard_rows(r, 8) for r in arrays))
    assert relative_error(losses, np.full(8, whole)) < 1e-12
    for share, gradient in zip(shares, gradients, strict=True):
        assert relative_error(share.reshape(gradient.shape) / 8, gradient) < 1e-9


def check_float32(loss, *arrays):
    """bfloat16 rows are computed in float32."""
    low = [jnp.asarray(x, jnp.bfloat16) for x in arrays]
    value = loss(*low)
    assert value.dtype == jnp.float32
    assert relative_error(value, loss(*(x.astype(jnp.float32) for x in low))) < 1e-6


def check_finite(loss, *arrays):
    """Value and gradients in float32."""
    arrays = [jnp.asarray(x, jnp.float32) for x in arrays]
    value, gradients = jax.value_and_grad(loss, tuple(range(len(arrays))))(*arrays)
    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
