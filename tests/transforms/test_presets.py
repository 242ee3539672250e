"""Presets: their numbers as published, their order, and what is penalised in them."""

import jax
import numpy as np
import pytest

from invclr_jax.transforms import base, colour, effects, filters
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.normalise import Normalise
from invclr_jax.transforms.presets import PRESETS, preset, views
from invclr_jax.transforms.wrappers import Frozen

OPTIONS = {"size": 8, "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.25, 0.3)}
X = np.random.default_rng(0).integers(0, 256, (6, 10, 10, 3), np.uint8)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_transform(name):
    transform = preset(name, **OPTIONS)
    assert isinstance(transform, base.Transform)
    assert base.alpha_names(transform) == colour.NAMES
    alpha, beta = transform.sample(jax.random.key(0), 6)
    result = jax.jit(transform.apply)(X, alpha, beta)
    assert result.shape == (6, 8, 8, 3)
    plain = ImageTransform(**OPTIONS).untransformed(X)
    np.testing.assert_allclose(transform.untransformed(X), plain, atol=1e-6)
    assert np.abs(result - plain).max(axis=(1, 2, 3)).min() > 0.01


@pytest.mark.parametrize(
    ("name", "jitter", "scale", "blur", "solarise"),
    [
        ("paper", (0.4, 0.4, 0.4, 0.1), (0.08, 1), 0, 0),
        ("simclr", (0.8, 0.8, 0.8, 0.2), (0.08, 1), 0.5, 0),
        ("moco_v2", (0.4, 0.4, 0.4, 0.1), (0.2, 1), 0.5, 0),
        ("byol_first", (0.4, 0.4, 0.2, 0.1), (0.08, 1), 1, 0),
        ("byol_second", (0.4, 0.4, 0.2, 0.1), (0.08, 1), 0.1, 0.2),
        ("cifar_first", (0.4, 0.4, 0.2, 0.1), (0.08, 1), 0, 0),
        ("cifar_second", (0.4, 0.4, 0.2, 0.1), (0.08, 1), 0, 0.2),
        ("cifar_vicreg", (0.4, 0.4, 0.2, 0.1), (0.2, 1), 0, 0.1),
        ("emp", (0.4, 0.4, 0.4, 0.2), (0.25, 0.25), 0.1, 0.1),
    ],
)
def test_numbers_are_the_published_ones(name, jitter, scale, blur, solarise):
    transform = preset(name, **OPTIONS)
    np.testing.assert_allclose(transform.alpha.mean, [1, 1, 1, 0], atol=1e-12)
    np.testing.assert_allclose(transform.alpha.variance, np.square(jitter) / 3)
    parts = list(getattr(transform, "transforms", [transform]))
    assert parts[0].crop_scale == scale
    assert (parts[0].jitter_probability, parts[0].grey_probability) == (0.8, 0.2)
    thawed = [part.transform if isinstance(part, Frozen) else part for part in parts[1:-1]]
    odds = {type(part.transform).__name__: part.probability for part in thawed}
    assert odds == {k: v for k, v in (("Blur", blur), ("Solarise", solarise)) if v}


def test_blur_and_solarisation_come_before_normalisation():
    transform = preset("byol_second", **OPTIONS)
    alpha, beta = transform.sample(jax.random.key(3), 6)
    image_beta, (sigma, (blurred, _)), (inverted, _), _ = beta
    assert 0 < np.mean(blurred) + np.mean(inverted) < 2
    first = ImageTransform(8, (0,) * 3, (1,) * 3, jitter_widths=(0.8, 0.8, 0.4, 0.2)).apply(
        X, alpha, image_beta
    )
    where = lambda coin, a, b: np.where(np.asarray(coin)[:, None, None, None], a, b)  # noqa: E731
    images = where(blurred, filters.gaussian_blur(first, sigma[:, 0]), first)
    images = where(inverted, filters.solarise(images, np.full(6, 0.5, np.float32)), images)
    expected = Normalise(OPTIONS["mean"], OPTIONS["std"]).untransformed(images)
    np.testing.assert_allclose(transform.apply(X, alpha, beta), expected, atol=1e-5)


def test_blur_can_be_penalised():
    transform = preset("moco_v2", penalised=("colour", "blur"), **OPTIONS)
    assert base.alpha_names(transform) == (*colour.NAMES, "blur")
    assert preset("emp", penalised=("blur",), **OPTIONS).alpha.names == ("blur",)
    assert effects.BLURS.high == 2


def test_options_come_first_and_views_are_two():
    assert preset("simclr", strength=0.25, **OPTIONS).transforms[0].strength == 0.25
    first, second = views("byol", **OPTIONS)
    assert (first, second) == (preset("byol_first", **OPTIONS), preset("byol_second", **OPTIONS))
    assert first != second
    assert views("paper", **OPTIONS) == (ImageTransform(**OPTIONS),) * 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: preset("dino", **OPTIONS), "no preset 'dino': use one of paper, simclr"),
        (lambda: preset("paper", penalised=("blur",), **OPTIONS), "'paper' does not blur"),
        (lambda: preset("emp", penalised=("hue",), **OPTIONS), r"penalised is \('hue',\)"),
        (lambda: Normalise((0.5,), ()), "one number of each for every channel"),
        (lambda: Normalise((0.5,), (0.2,)).apply(X), "3 channels, channels last, and mean has 1"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
