"""Adapters: the identity at first, more invariant afterwards, clean features where they were."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import invclr_jax as ic
from invclr_jax.objectives.canonical import canonical_penalty
from invclr_jax.training import adapter as adapters
from invclr_jax.training.adapter import Adapter, AdapterSettings
from tests.own import Shade

SETTINGS = AdapterSettings(hidden=32, steps=600, learning_rate=1e-2, batch_size=256, keep=0.1)


@pytest.fixture(scope="module")
def features():
    """±p: the transformation draws a sign, so that |z| is invariant and z is not; clean are +p."""
    rng = np.random.default_rng(0)
    picture = rng.uniform(0.5, 1.5, (600, 1, 4))
    signs = rng.choice([-1.0, 1.0], (600, 4, 4))
    signs[:, 0] = 1
    return jnp.asarray(picture * signs, jnp.float32)


def test_a_fresh_adapter_is_the_identity(features):
    z = features[:, 0]
    variables = Adapter(8).init(jax.random.key(0), z)
    np.testing.assert_array_equal(Adapter(8).apply(variables, z), z)


def test_the_loss_is_the_penalty_plus_the_movement_of_clean_features(features):
    rows, settings = features[:32, :2], AdapterSettings(hidden=4, keep=3.0)
    statistics = {"mean": jnp.zeros(4), "std": jnp.full(4, 2.0)}
    params = Adapter(4).init(jax.random.key(0), rows[:, 0])["params"]
    params["Dense_1"]["bias"] = jnp.full(4, 0.5)  # moves every feature by 0.5·std
    value = adapters.loss(params, statistics, rows, jax.random.key(1), settings)
    penalty = canonical_penalty(rows[:, 0] + 1, rows[:, 1] + 1)
    np.testing.assert_allclose(value, penalty + 3 * 0.25, rtol=1e-5)


def test_training_finds_what_is_invariant_and_keeps_clean_features(features):
    clean, views = features[:, 0], features[:, 1:]
    module, variables = adapters.fit(clean, views, SETTINGS)

    def adapted(z):
        return module.apply(variables, z)

    def missing(change):
        return float(canonical_penalty(change(views[:, 0]), change(views[:, 1])))

    moved = jnp.mean((adapted(clean) - clean) ** 2 / jnp.var(clean, axis=0)[None])
    assert missing(lambda z: z) > 0.9
    assert missing(adapted) < 0.3
    assert moved < 0.15  # of the variance


@pytest.mark.parametrize("plain", [False, True])
def test_adapt_gives_an_encoder(plain):
    images = np.random.default_rng(1).random((60, 8, 8, 3), np.float32)

    def encode(x):
        x = np.asarray(x) if plain else x
        return x.reshape(len(x), -1)[:, :6] + 1

    settings = AdapterSettings(hidden=8, steps=3, batch_size=16)
    adapted = ic.adapt(encode, images, Shade(), num_views=2, settings=settings)
    z = adapted.encode(images)
    assert z.shape == (60, 6)
    assert 0 < np.abs(z - encode(images)).max() < 0.5


def test_mistakes_are_sentences(features, no_shape_checks):
    with pytest.raises(ValueError, match="objective is 'byol': use one of canonical, simclr"):
        AdapterSettings(objective="byol")
    with pytest.raises(ValueError, match="steps is 0"):
        AdapterSettings(steps=0)
    with pytest.raises(ValueError, match="do not belong"):
        adapters.fit(features[:, 0], features[:5, 1:], SETTINGS)
    with pytest.raises(ValueError, match="num_views is 0"):
        ic.adapt(lambda x: x, np.zeros((30, 8, 8, 3), np.uint8), Shade(), num_views=0)
