"""All pixels along one axis and back: in either order, at any derivative, mapped or not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.models import pixels

SHAPE = (2, 3, 4, 5, 6)


def array(shape=SHAPE, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def ours(x):
    """Something that mixes pixels but does not know their order."""
    flat = pixels.flatten(x)
    return pixels.unflatten(flat * jnp.square(flat).mean(1, keepdims=True), x.shape)


def theirs(x):
    return x * jnp.square(x).mean(tuple(range(1, x.ndim - 1)), keepdims=True)


@pytest.mark.parametrize("shape", [SHAPE, (1, 7, 6), (2, 3, 5, 6)])
def test_values_and_derivatives(x64, shape):
    x, direction = array(shape), array(shape, 1)
    np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-12)

    def second(f):
        slope = jax.grad(lambda x: jnp.sin(f(x)).sum())
        return jax.jit(lambda x: jax.jvp(slope, (x,), (direction,)))(x)

    for mine, other in zip(second(ours), second(theirs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-12)


def test_mapped(x64):
    for axis in (0, 3, 5):
        x = jnp.moveaxis(array((3, *SHAPE)), 0, axis)
        mine, other = (jax.vmap(f, axis, axis)(x) for f in (ours, theirs))
        np.testing.assert_allclose(mine, other, rtol=1e-12)


def test_both_orders_are_inverted():
    """The order of TPUs, which nothing here would use, and what programs for them contain."""
    x = array()
    flat = pixels._flatten_by_pixel(x)
    np.testing.assert_array_equal(flat[0, :3], x[0, :, 0, 0], "images are next to each other")
    np.testing.assert_array_equal(pixels._unflatten_by_pixel(flat, shape=SHAPE), x)
    np.testing.assert_array_equal(pixels.flatten(x)[0, :5], x[0, 0, 0], "rows are on a CPU")
    traced = jax.jit(ours).trace(x)
    for platform, moved in (("cpu", False), ("cuda", False), ("tpu", True)):
        text = traced.lower(lowering_platforms=(platform,)).as_text()
        assert ("stablehlo.transpose" in text) == moved
