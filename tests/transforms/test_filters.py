"""Filters against scipy.ndimage and Pillow, their derivatives, and the transforms around them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps
from scipy import ndimage, stats

from invclr_jax.transforms import base, effects, filters
from invclr_jax.transforms.base import Box, LogUniform
from tests.reference import relative_error

N = 5
IMAGES = np.random.default_rng(0).random((N, 11, 14, 3))
EIGHT_BIT = np.random.default_rng(1).integers(0, 256, (N, 11, 14, 3), np.uint8)
FLOATS = EIGHT_BIT / np.float32(255)
SEEDS = np.arange(2 * N, dtype=np.uint32).reshape(N, 2)


@pytest.mark.parametrize("channels", [1, 3, 5])
def test_blur_is_scipys(x64, channels):
    images = np.random.default_rng(2).random((N, 11, 14, channels))
    sigma = np.array([0.3, -0.8, 1.5, 3.0, 0.05])
    ours = jax.jit(filters.gaussian_blur)(images, sigma)
    for result, image, width in zip(ours, images, np.abs(sigma), strict=True):
        # Kernels of the same length: scipy's ends after radius pixels, ours after 2·length - 1.
        for axis, length in enumerate(image.shape[:2]):
            options = {"mode": "nearest", "radius": 2 * length - 1}
            image = ndimage.gaussian_filter1d(image, width, axis, **options)
        np.testing.assert_allclose(result, image, atol=1e-12)
    np.testing.assert_array_equal(ours[-1], images[-1])


def test_sharpness_is_pillows():
    """Pillow rounds the smooth picture to 8 bits, half a level times |1-f|, and the result."""
    factor = np.array([0.0, 0.5, 1.0, 1.7, 3.0], np.float32)
    ours = 255 * np.asarray(jax.jit(filters.adjust_sharpness)(FLOATS, factor))
    for result, pixels, f in zip(ours, EIGHT_BIT, factor, strict=True):
        theirs = np.asarray(
            ImageEnhance.Sharpness(Image.fromarray(pixels)).enhance(float(f)), float
        )
        assert np.abs(result - theirs).max() <= 1.01 + 0.5 * abs(1 - f)
    np.testing.assert_allclose(ours[2], EIGHT_BIT[2], atol=1e-4)
    small = np.full((1, 2, 5, 1), 0.3, np.float32)
    np.testing.assert_array_equal(filters.adjust_sharpness(small, factor[:1]), small)


def test_gamma_is_a_power():
    images = IMAGES.copy()
    images[:, 0] = 0
    exponent = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    ours = filters.adjust_gamma(images, exponent)
    np.testing.assert_allclose(ours, images ** (2 ** exponent[:, None, None, None]), rtol=1e-5)
    gradient = jax.grad(lambda e: filters.adjust_gamma(images, e).sum())(exponent)
    assert np.isfinite(gradient).all()


def test_noise_is_normal_and_belongs_to_its_seed():
    images = np.full((N, 40, 40, 3), 0.5, np.float32)
    strength = np.array([0.0, 0.02, 0.05, 0.05, 0.1], np.float32)
    ours = np.asarray(jax.jit(filters.add_noise)(images, strength, SEEDS))
    np.testing.assert_array_equal(ours[0], images[0])
    for result, scale in zip(ours[1:], strength[1:], strict=True):
        noise = (result.ravel() - 0.5) / scale
        assert stats.kstest(noise, stats.norm.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(ours[2].ravel(), ours[3].ravel())[0, 1]) < 5 / np.sqrt(4800)
    alone = filters.add_noise(images[3:4], strength[3:4], SEEDS[3:4])
    np.testing.assert_allclose(alone[0], ours[3], atol=1e-6)


def test_solarisation_is_pillows():
    threshold = np.array([0.0, 0.25, 0.5, 0.75, 1.1], np.float32)
    ours = 255 * np.asarray(filters.solarise(FLOATS, threshold))
    for result, pixels, t in zip(ours, EIGHT_BIT, threshold, strict=True):
        theirs = ImageOps.solarize(Image.fromarray(pixels), int(np.ceil(t * 255)))
        np.testing.assert_allclose(result, theirs, atol=1e-4)


def test_cutout_covers_a_square():
    centre = np.array([[0.5, 0.5], [0.0, 0.0], [1.0, 0.3], [0.2, 0.9], [0.5, 0.0]], np.float32)
    ours = np.asarray(filters.cutout(FLOATS, centre, 6 / 11, fill=2.0))
    for result, image, (down, right) in zip(ours, FLOATS, centre, strict=True):
        expected = image.copy()
        for y in range(11):
            for x in range(14):
                if abs(y + 0.5 - 11 * down) <= 3 and abs(x + 0.5 - 14 * right) <= 3:
                    expected[y, x] = 2.0
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (filters.gaussian_blur, [0.4, 0.7, 1.2, 2.0, -0.9]),
        (filters.adjust_sharpness, [0.2, 0.7, 1.1, 0.9, 0.4]),
        (filters.adjust_gamma, [-0.7, 0.1, 0.4, 1.0, -0.1]),
        (lambda x, a: filters.add_noise(x, a, SEEDS), [0.01, 0.02, 0.03, 0.01, 0.015]),
    ],
)
def test_first_and_second_derivatives(x64, call, parameter):
    images = 0.2 + 0.6 * IMAGES  # away from the clip's kinks

    @jax.jit
    def value(parameter):
        return jnp.sin(5 * call(images, parameter)).sum(axis=(1, 2, 3))

    gradient = jax.jit(jax.grad(lambda p: value(p).sum()))
    curvature = jax.jit(jax.grad(lambda p: gradient(p).sum()))
    parameter, step = np.array(parameter), 1e-5
    first = (value(parameter + step) - value(parameter - step)) / (2 * step)
    second = (gradient(parameter + step) - gradient(parameter - step)) / (2 * step)
    assert relative_error(gradient(parameter), first) < 1e-7
    assert relative_error(curvature(parameter), second) < 1e-6
    assert np.abs(second).min() > 0


# Transforms ------------------------------------------------------------------------------------

TRANSFORMS = [
    (effects.Blur(), ("blur",)),
    (effects.Sharpness(), ("sharpness",)),
    (effects.Gamma(), ("log2_gamma",)),
    (effects.Noise(), ("noise",)),
    (effects.Solarise(), ()),
    (effects.Cutout(), ()),
]


@pytest.mark.parametrize(("transform", "names"), TRANSFORMS)
def test_transforms_keep_the_protocol(transform, names):
    assert isinstance(transform, base.Transform)
    assert base.alpha_names(transform) == names
    assert hash(transform) == hash(type(transform)())
    alpha, beta = jax.jit(transform.sample, static_argnums=1)(jax.random.key(0), N)
    assert alpha.shape == (N, len(names))
    result = np.asarray(jax.jit(transform.apply)(EIGHT_BIT, alpha, beta))
    assert result.shape == EIGHT_BIT.shape
    assert result.min() >= 0
    assert result.max() <= 1
    plain = np.asarray(transform.untransformed(EIGHT_BIT))
    np.testing.assert_allclose(plain, FLOATS, atol=1e-6)
    assert np.abs(result - plain).max(axis=(1, 2, 3)).min() > 0.005
    again = transform.apply(EIGHT_BIT, *transform.sample(jax.random.key(1), N))
    if not isinstance(transform, effects.Solarise):
        assert np.abs(again - result).max() > 0.01


def test_transforms_call_their_filters():
    alpha, seeds = np.array([[0.1], [0.5], [1.0], [1.5], [2.0]], np.float32), SEEDS
    for transform, call in [
        (effects.Blur(), filters.gaussian_blur),
        (effects.Sharpness(), filters.adjust_sharpness),
        (effects.Gamma(LogUniform([0.5], [2.0])), filters.adjust_gamma),
        (effects.Noise(), lambda x, a: filters.add_noise(x, a, seeds)),
    ]:
        beta = seeds if isinstance(transform, effects.Noise) else None
        np.testing.assert_array_equal(
            transform.apply(FLOATS, alpha, beta), call(FLOATS, alpha[:, 0])
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: filters.gaussian_blur(FLOATS, np.ones(2)), r"sigma .*\(2,\), not \(5,\)"),
        (lambda: filters.solarise(EIGHT_BIT, np.ones(5)), "divide 8-bit images by 255"),
        (lambda: filters.cutout(FLOATS, np.ones((5, 3)), 0.5), r"\(5, 3\), not \(5, 2\)"),
        (
            lambda: effects.Blur().apply(FLOATS, np.ones((5, 2))),
            r"\(5, 2\), not \(5, 1\): give \(blur\)",
        ),
        (lambda: effects.Noise(Box((), ())), "Noise was given a distribution of 0 components"),
        (lambda: effects.Cutout(side=0), "side is 0: give a share"),
    ],
)
def test_mistakes_are_named(no_shape_checks, call, message):
    with pytest.raises(ValueError, match=message):
        call()
