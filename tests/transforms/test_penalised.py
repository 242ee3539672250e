"""Which parts of the image transform are alpha, and images of any number of channels."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.transforms import base, colour, geometry, warping
from invclr_jax.transforms.base import Box
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.spatial import random_resized_crops

SIZE, N = 12, 6
X = np.random.default_rng(0).integers(0, 256, (N, 16, 16, 3), np.uint8)
PAPER = ImageTransform(SIZE, (0.5,) * 3, (0.25,) * 3)
EVERYTHING = dataclasses.replace(PAPER, penalised=("colour", "crop", "affine"))


def normalised(images):
    return (np.asarray(images) - 0.5) / 0.25


def test_alpha_is_made_of_what_is_penalised():
    expected = (*colour.NAMES, *geometry.NAMES, *warping.NAMES)
    assert base.alpha_names(EVERYTHING) == expected
    other = dataclasses.replace(EVERYTHING, penalised=["affine", "colour"])
    assert base.alpha_names(other) == (*warping.NAMES, *colour.NAMES)
    parts = (PAPER.alpha, random_resized_crops(), EVERYTHING.affine)
    np.testing.assert_array_equal(
        EVERYTHING.alpha.mean, np.concatenate([part.mean for part in parts])
    )
    np.testing.assert_array_equal(
        EVERYTHING.alpha.variance, np.concatenate([part.variance for part in parts])
    )
    assert EVERYTHING.affine.high[0] == pytest.approx(1 / 12)
    assert hash(EVERYTHING) == hash(dataclasses.replace(EVERYTHING))


def test_apply_is_crop_flip_affine_jitter_grey():
    alpha, beta = EVERYTHING.sample(jax.random.key(0), N)
    assert beta.crops is None
    assert beta.colour is None
    assert beta.affine is None
    images = geometry.crop(X / np.float32(255), alpha[:, 4:8], (SIZE, SIZE))
    images = geometry.affine(geometry.horizontal_flip(images, beta.flip), alpha[:, 8:])
    coin = lambda name: np.asarray(getattr(beta, name))[:, None, None, None]  # noqa: E731
    images = np.where(coin("jitter"), colour.colour_jitter(images, alpha[:, :4]), images)
    images = np.where(coin("grey"), colour.greyscale(images), images)
    result = jax.jit(EVERYTHING.apply)(X, alpha, beta)
    np.testing.assert_allclose(result, normalised(images), atol=5e-5)
    gradient = jax.jit(jax.grad(lambda a: (EVERYTHING.apply(X, a, beta) ** 2).sum()))(alpha)
    assert (np.asarray(gradient)[:, 4:9] != 0).all()
    assert np.isfinite(gradient).all()


def test_what_is_not_penalised_is_beta():
    """The same colours, whether they are alpha or beta."""
    still = dataclasses.replace(PAPER, penalised=())
    colours, beta = PAPER.sample(jax.random.key(1), N)
    nothing, rest = still.sample(jax.random.key(1), N)
    assert nothing.shape == (N, 0)
    assert still.alpha.size == 0
    np.testing.assert_array_equal(rest.colour, colours)
    np.testing.assert_array_equal(still.apply(X, nothing, rest), PAPER.apply(X, colours, beta))
    turning = dataclasses.replace(PAPER, affine=[0.5, 0, 0, 0, 0, 0])
    _, beta = turning.sample(jax.random.key(1), N)
    assert beta.affine.shape == (N, 6)
    level = PAPER.apply(X, colours, beta._replace(affine=None))
    assert np.abs(turning.apply(X, colours, beta) - level).max() > 0.5
    assert turning == dataclasses.replace(PAPER, affine=turning.affine)


def test_shifts_start_from_colour_alone():
    regime, shifted = base.shifts(EVERYTHING)
    alpha, beta = regime.sample(jax.random.key(2), N)
    assert not np.asarray(alpha[:, 4:]).any()
    expected = colour.colour_jitter(
        geometry.resize(X / np.float32(255), (SIZE, SIZE)), alpha[:, :4]
    )
    np.testing.assert_allclose(EVERYTHING.apply(X, alpha, beta), normalised(expected), atol=5e-5)
    assert sum(name.startswith("strength=") for name in shifted) == 9
    (name,) = [name for name in shifted if name.startswith("angle_shift=+0.0481")]
    turned, same = shifted[name].sample(jax.random.key(2), N)
    np.testing.assert_allclose(turned[:, 8], 1 / 6 / np.sqrt(12), rtol=1e-6)
    np.testing.assert_array_equal(turned[:, :8], alpha[:, :8])
    np.testing.assert_array_equal(same.flip, beta.flip)
    assert not any(name.startswith("shift_down") for name in shifted)  # it does not vary
    assert list(base.shifts(PAPER)[1]) == [f"strength={s / 8:g}" for s in range(9)]


@pytest.mark.parametrize("channels", [1, 5])
def test_other_channels(channels):
    transform = ImageTransform(
        SIZE,
        [0.5] * channels,
        [0.25] * channels,
        jitter_probability=0,
        grey_probability=0,
        penalised=("crop", "affine"),
    )
    x = np.random.default_rng(1).random((N, 16, 16, channels), np.float32)
    alpha, beta = transform.sample(jax.random.key(0), N)
    assert alpha.shape == (N, 10)
    images = geometry.crop(x, alpha[:, :4], (SIZE, SIZE))
    images = geometry.affine(geometry.horizontal_flip(images, beta.flip), alpha[:, 4:])
    np.testing.assert_allclose(transform.apply(x, alpha, beta), normalised(images), atol=5e-5)
    plain = dataclasses.replace(transform, size=16).untransformed(x)
    np.testing.assert_allclose(plain, normalised(x), atol=1e-5)
    regime, shifted = base.shifts(transform)
    assert regime.jitter_probability == 0
    assert not any(name.startswith("strength") for name in shifted)
    assert len(shifted) == 4 * 5


def test_widths_and_ratio():
    byol = dataclasses.replace(PAPER, jitter_widths=(0.8, 0.8, 0.4, 0.2), crop_ratio=(1, 1))
    np.testing.assert_allclose(byol.alpha.high - byol.alpha.mean, [0.4, 0.4, 0.2, 0.1])
    crops = byol.sample(jax.random.key(0), 50)[1].crops
    np.testing.assert_array_equal(crops.aspect, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"penalised": ("color",)},
            r"penalised is \('color',\): name some of colour, crop, affine",
        ),
        ({"penalised": ("crop", "crop")}, "each at most once"),
        ({"mean": (0.5,), "std": (0.2,)}, "1 channels, and jitter and grey need three: use jitter"),
        ({"jitter_widths": (0.8, 0.8)}, "give four numbers of at least 0, for .brightness"),
        ({"crop_ratio": (2, 1)}, "crop_ratio is .*in this order"),
        ({"affine": (0.1, 0.1)}, "distribution of 2 components: it needs 6"),
        ({"affine": Box([0.0], [1.0])}, "distribution of 1 components: it needs 6"),
        ({"affine": (np.inf, 0, 0, 0, 0, 0)}, "finite"),
    ],
)
def test_mistakes_are_named(no_shape_checks, options, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(PAPER, **options)


def test_wrong_arguments_are_named(no_shape_checks):
    alpha, beta = EVERYTHING.sample(jax.random.key(0), N)
    with pytest.raises(
        ValueError, match=r"\(6, 4\), not \(6, 14\): give \(brightness, .*crop_down"
    ):
        EVERYTHING.apply(X, alpha[:, :4], beta)
    with pytest.raises(ValueError, match=r"images have 1 channels.*mean has 3: give one mean"):
        EVERYTHING.untransformed(jnp.zeros((2, 8, 8, 1)))
