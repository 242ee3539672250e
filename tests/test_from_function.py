"""Encoders of one's own: any function of images."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import invclr_jax as ic
from invclr_jax.evaluation.settings import Settings
from invclr_jax.transforms.base import Compose, Sometimes, frozen
from invclr_jax.transforms.colour import NAMES
from invclr_jax.transforms.effects import Blur
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.normalise import Normalise, without_normalisation
from tests.own import pictures

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.2, 0.1)
TRANSFORM = ImageTransform(8, MEAN, STD)
WEIGHTS = np.random.default_rng(0).normal(size=(8 * 8 * 3, 5)).astype(np.float32)


def in_jax(images):
    return jnp.matmul(images.reshape(len(images), -1), WEIGHTS, precision="highest")


def in_numpy(images):
    return np.asarray(images, np.float32).reshape(len(images), -1) @ WEIGHTS


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(1).random((40, 8, 8, 3), np.float32)


@pytest.mark.parametrize("function", [in_jax, jax.jit(in_jax), in_numpy])
def test_encode_is_the_function_of_plain_images(function, images):
    encoder = ic.Encoder.from_function(function, TRANSFORM)
    np.testing.assert_allclose(encoder.encode(images), in_numpy(images), atol=1e-5)
    levels = np.round(images * 255).astype(np.uint8)
    np.testing.assert_allclose(encoder.encode(levels), in_numpy(levels / 255), atol=1e-5)


def test_represent_does_not_depend_on_the_kind_of_function_or_the_batch_size(images):
    key = jax.random.key(2)
    traced = ic.Encoder.from_function(in_jax, TRANSFORM).represent(images, key, 3)
    host = ic.Encoder.from_function(in_numpy, TRANSFORM).represent(images, key, 3, batch_size=7)
    np.testing.assert_allclose(traced, host, atol=1e-5)
    assert np.abs(traced - in_numpy(images)).max() > 0.1


def test_evaluate_takes_a_plain_function():
    encoder = ic.Encoder.from_function(lambda x: np.asarray(x).mean((1, 2)), TRANSFORM)
    scores = ic.evaluate(encoder, pictures(), ["untransformed"], settings=Settings(limit=40))
    assert scores["probe/lbfgs/untransformed/accuracy"] == 100  # red tells the class


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda x: in_jax(x) * jnp.nan, "features hold 200 NaN"),
        (lambda x: in_numpy(x) * np.nan, "features hold 200 NaN"),
        (lambda x: in_jax(x)[:, 0], r"encode returned shape \(\d+,\) for \d+ images"),
        (lambda x: in_numpy(x)[:, :0], r"encode returned shape \(\d+, 0\) for \d+ images"),
        (lambda x: in_jax(x)[:-1], r"encode returned \d+ rows for \d+ images"),
        (lambda x: np.asarray(x).reshape(3, 7), r"encode failed on images of shape"),
        (lambda x: np.array([["a"]] * len(np.asarray(x))), "array of <U1"),
    ],
)
def test_functions_that_give_no_features_are_refused(function, sentence, images):
    with pytest.raises(ValueError, match=sentence):
        ic.Encoder.from_function(function, TRANSFORM).encode(images)


def test_arguments_of_the_wrong_kind_are_refused(no_shape_checks):
    with pytest.raises(ValueError, match="encode is a ndarray"):
        ic.Encoder.from_function(WEIGHTS, TRANSFORM)
    with pytest.raises(ValueError, match="transform is a str"):
        ic.Encoder.from_function(in_jax, "simclr")


def test_without_normalisation_undoes_it_everywhere_and_nothing_else(images):
    def undone(pictures):
        return pictures * np.reshape(STD, (1, 1, 1, 3)) + np.reshape(MEAN, (1, 1, 1, 3))

    key = jax.random.key(3)
    composed = Compose([Sometimes(Blur(), 0.5), frozen(Blur()), Normalise(MEAN, STD)])
    for transform in (TRANSFORM, composed, Normalise(MEAN, STD), frozen(TRANSFORM)):
        plain = without_normalisation(transform)
        alpha, beta = transform.sample(key, 40)
        expected = undone(transform.apply(images, alpha, beta))
        np.testing.assert_allclose(plain.apply(images, alpha, beta), expected, atol=1e-6)
        np.testing.assert_allclose(plain.untransformed(images), images, atol=1e-6)
        np.testing.assert_array_equal(plain.sample(key, 40)[0], alpha)
    assert without_normalisation(TRANSFORM).alpha.names == NAMES
    assert without_normalisation(Blur()) == Blur()
