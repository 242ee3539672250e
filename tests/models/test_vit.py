"""Vision transformers against a forward pass in NumPy, and the published parameter counts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf

from invclr_jax.models import network
from invclr_jax.models.vit import FROZEN, ViT, ViTSmall, ViTTiny
from tests.reference import relative_error

SMALL = {"heads": 2, "depth": 2, "width": 6, "patch": 4}


def made(images, **options):
    """A module with random parameters everywhere (biases and norms too), and its statistics."""
    module = ViT(**SMALL | options)
    params, statistics, _ = network.init(module, jax.random.key(0), jnp.asarray(images))
    rng = np.random.default_rng(1)
    params = jax.tree.map(lambda p: p + jnp.asarray(0.3 * rng.normal(size=p.shape)), params)
    return module, params, statistics


def numpy_norm(x, params):
    centred = x - x.mean(-1, keepdims=True)
    x = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
    return x * params["scale"] + params["bias"]


def numpy_dense(x, params):
    return x @ params["kernel"] + params["bias"]


def numpy_block(x, params, heads):
    """One image's tokens, head by head."""
    y = numpy_norm(x, params["norm1"])
    q, k, v = np.split(numpy_dense(y, params["qkv"]), 3, axis=1)
    width, mixed = q.shape[1] // heads, []
    for head in range(heads):
        own = slice(head * width, (head + 1) * width)
        weights = np.exp(q[:, own] @ k[:, own].T / np.sqrt(width))
        mixed.append(weights / weights.sum(1, keepdims=True) @ v[:, own])
    x = x + numpy_dense(np.concatenate(mixed, axis=1), params["out"])
    y = numpy_dense(numpy_norm(x, params["norm2"]), params["mlp1"])
    return x + numpy_dense(y * (1 + erf(y / np.sqrt(2))) / 2, params["mlp2"])


def numpy_position(row, column, dim):
    place = []
    for where in (column, row):
        for function in (np.sin, np.cos):
            place += [function(where / 10_000 ** (i / (dim // 4))) for i in range(dim // 4)]
    return np.array(place)


def numpy_vit(image, params, kernel, bias, *, heads, depth, patch, token):
    tokens = [] if token is None else [token]
    for row in range(image.shape[0] // patch):
        for column in range(image.shape[1] // patch):
            pixels = image[row * patch : (row + 1) * patch, column * patch : (column + 1) * patch]
            place = numpy_position(row, column, kernel.shape[1])
            tokens.append(pixels.ravel() @ kernel + bias + place)
    x = np.array(tokens)
    for index in range(depth):
        x = numpy_block(x, params[f"block{index}"], heads)
    x = numpy_norm(x, params["norm"])
    return x.mean(0) if token is None else x[0]


@pytest.mark.parametrize(
    "options",
    [{}, {"pool": "token", "frozen_patches": True}, {"remat": True}],
    ids=["mean", "token, frozen patches", "remat"],
)
def test_forward_pass(x64, options):
    images = np.random.default_rng(0).normal(size=(2, 8, 12, 3))  # not square
    module, params, statistics = made(images, **options)
    z, updated = network.train(module, params, statistics, jnp.asarray(images), jax.random.key(0))
    numbers = jax.tree.map(np.asarray, params)
    frozen = options.get("frozen_patches", False)
    kernel = np.asarray(statistics[FROZEN]["patches"] if frozen else numbers["patches"])
    bias = np.zeros(12) if frozen else numbers["patches_bias"]
    how = {"heads": 2, "depth": 2, "patch": 4, "token": numbers.get("token")}
    expected = [numpy_vit(image, numbers, kernel, bias, **how) for image in images]
    assert z.dtype == np.float64
    assert relative_error(z, np.array(expected)) < 1e-12
    assert jax.tree.structure(updated) == jax.tree.structure(statistics)


def test_a_frozen_projection_is_no_parameter(x64):
    """No gradient and no weight decay can reach it; it is stored beside the parameters."""
    images = np.random.default_rng(0).normal(size=(2, 8, 8, 3))
    _, params, statistics = made(images, frozen_patches=True)
    assert "patches" not in params
    assert statistics[FROZEN]["patches"].shape == (48, 12)
    assert statistics[FROZEN]["patches"].std() > 0.1


@pytest.mark.parametrize(
    ("module", "published", "dim"),
    # timm's vit_{tiny,small}_patch16_224, whose learned positions (197 of them) we do not have.
    [(ViTTiny, 5_717_416 - 193_000, 192), (ViTSmall, 22_050_664 - 385_000, 384)],
)
def test_parameter_counts(module, published, dim):
    image = jax.ShapeDtypeStruct((1, 224, 224, 3), jnp.float32)
    encoder = module(patch=16, pool="token")
    params = jax.eval_shape(encoder.init, jax.random.key(0), image)["params"]
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == published - 197 * dim
    assert encoder.representation_dim == dim
    flat = jax.tree.leaves_with_path(params)
    decayed = {path[-1].key for path, leaf in flat if leaf.ndim > 1}
    assert decayed == {"kernel", "patches"}  # what the mask batch_norm_and_bias keeps


def test_low_precision_gives_float32():
    images = np.random.default_rng(0).normal(size=(2, 8, 8, 3)).astype(np.float32)
    module, params, _ = made(images)
    exact = module.apply({"params": params}, images)
    low = ViT(**SMALL, dtype=jnp.bfloat16).apply({"params": params}, images)
    assert low.dtype == jnp.float32
    assert 0 < relative_error(low, exact) < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 3, "heads": 2}, "2 heads of width 3 make 6 components: positions need a mul"),
        ({"pool": "max"}, "pool 'max' is unknown: use one of mean, token"),
        ({"depth": 0}, "depth must be at least 1, got 0"),
    ],
)
def test_nonsense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ViT(**options)


def test_pictures_that_do_not_split():
    with pytest.raises(ValueError, match=r"\(1, 10, 8, 3\) do not split into patches of 4"):
        ViT(**SMALL).init(jax.random.key(0), jnp.zeros((1, 10, 8, 3)))
