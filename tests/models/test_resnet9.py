"""ResNet9 against a forward pass in NumPy; its pooling against Flax's."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.models.resnet9 import ResNet9, halve
from tests.reference import relative_error


def numpy_unit(x, kernel, statistics):
    """Convolution padded by one, batch norm by the batch's statistics, ReLU."""
    h, w = x.shape[1:3]
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    y = sum(padded[:, i : i + h, j : j + w] @ kernel[i, j] for i in range(3) for j in range(3))
    mean, var = y.mean((0, 1, 2)), y.var((0, 1, 2))
    np.testing.assert_allclose(statistics["mean"], 0.1 * mean, rtol=1e-9, atol=1e-12)
    return np.maximum((y - mean) / np.sqrt(var + 1e-5), 0)


def numpy_pool(x):
    return np.maximum.reduce([x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)])


@pytest.mark.parametrize("conv", ["xla", "auto"])
def test_forward_pass(x64, conv):
    images = np.random.default_rng(0).normal(size=(3, 8, 8, 2))
    encoder = ResNet9(width=3, conv=conv, dtype=jnp.float64)
    variables = jax.jit(encoder.init)(jax.random.key(0), images)
    z, changed = jax.jit(lambda v: encoder.apply(v, images, True, mutable=["batch_stats"]))(
        variables
    )

    def unit(x, name):
        kernel = np.asarray(variables["params"][f"{name}_conv"]["kernel"])
        return numpy_unit(x, kernel, changed["batch_stats"][f"{name}_bn"])

    x = unit(images, "stem")
    x = numpy_pool(unit(x, "layer1"))
    x = x + unit(unit(x, "layer1_inner1"), "layer1_inner2")
    x = numpy_pool(unit(x, "layer2"))
    x = numpy_pool(unit(x, "layer3"))
    x = x + unit(unit(x, "layer3_inner1"), "layer3_inner2")
    assert relative_error(z, x.mean((1, 2))) < 1e-9
    assert z.shape == (3, encoder.representation_dim)


def test_parameter_count():
    """Page's 6,573,120 without the classifier (5120) and batch norm (4480)."""
    image = jax.ShapeDtypeStruct((1, 32, 32, 3), jnp.float32)
    params = jax.eval_shape(ResNet9().init, jax.random.key(0), image)["params"]
    kernels = [leaf for leaf in jax.tree.leaves(params) if leaf.ndim == 4]
    channels = [(3, 64), (64, 128), (128, 128), (128, 128), (128, 256), (256, 512)]
    channels += [(512, 512), (512, 512)]
    assert sum(k.size for k in kernels) == sum(9 * a * b for a, b in channels) == 6_563_520


@pytest.mark.parametrize("shape", [(2, 6, 8, 3), (2, 7, 5, 3)])
def test_pooling(shape):
    x = jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)
    np.testing.assert_array_equal(halve(x), nn.max_pool(x, (2, 2), (2, 2)))


def test_pictures_that_are_too_small():
    with pytest.raises(ValueError, match=r"at least 8×8 pixels, got shape \(1, 8, 7, 3\)"):
        ResNet9().init(jax.random.key(0), jnp.zeros((1, 8, 7, 3)))
    with pytest.raises(ValueError, match="width must be a positive number of channels, got 0"):
        ResNet9(width=0)
