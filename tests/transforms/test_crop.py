"""The crop in alpha: against Pillow, the identity, derivatives, distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from scipy import stats

from invclr_jax.transforms import geometry
from invclr_jax.transforms.base import Box, alpha_names
from invclr_jax.transforms.spatial import Crop
from tests.reference import relative_error
from tests.transforms.test_geometry import pillow

HEIGHT, WIDTH = 20, 26
IMAGES = np.random.default_rng(0).random((6, HEIGHT, WIDTH, 3))
crop = jax.jit(geometry.crop, static_argnames="size")


def random_alpha(n, seed=1):
    rng = np.random.default_rng(seed)
    place, log_area = rng.uniform(-0.9, 0.9, (n, 2)), rng.uniform(-2, -0.4, (n, 1))
    return np.concatenate([place, log_area, rng.uniform(-0.3, 0.3, (n, 1))], 1)


def box_of(alpha):
    """(left, top, right, bottom) in pixels."""
    down, right, log_area, log_aspect = alpha
    height = HEIGHT * np.sqrt(np.exp(log_area - log_aspect))
    width = WIDTH * np.sqrt(np.exp(log_area + log_aspect))
    top, left = (1 + down) / 2 * (HEIGHT - height), (1 + right) / 2 * (WIDTH - width)
    return left, top, left + width, top + height


@pytest.mark.parametrize("size", [(32, 40), (5, 4), (20, 26)])
def test_equal_to_pillows_resize_of_a_box(x64, size):
    alpha = random_alpha(len(IMAGES))
    ours = crop(IMAGES, alpha, size=size)
    for result, image, row in zip(ours, IMAGES.astype(np.float32), alpha, strict=True):
        theirs = pillow(image, size, Image.Resampling.BILINEAR, box_of(row))
        np.testing.assert_allclose(result, theirs, atol=2e-6)


def test_whole_image_is_the_identity(precision):
    images, alpha = IMAGES.astype(precision), np.zeros((len(IMAGES), 4), precision)
    alpha[:, :2] = random_alpha(len(IMAGES))[:, :2]  # wherever a box without room is put
    result = crop(images, alpha, size=(HEIGHT, WIDTH))
    assert result.dtype == precision
    np.testing.assert_array_equal(result, images)


def test_sides_are_never_longer_than_the_image(x64):
    long, cut = np.array([[0.0, 0.4, -0.2, 1.0]]), np.array([[0.0, 0.4, -1.2, 1.2]])
    cut[0, 2:] = [-0.6, 0.6]  # exp((-0.2 - 1)/2) of the height, all of the width
    for size in ((HEIGHT, WIDTH), (7, 9)):
        np.testing.assert_allclose(
            crop(IMAGES[:1], long, size=size), crop(IMAGES[:1], cut, size=size), atol=1e-12
        )


def test_moving_the_box_never_jumps(x64):
    """Each step of a fine sweep moves pixels by no more than the box moves."""
    sweep = np.zeros((401, 4))
    sweep[:, 0], sweep[:, 2] = np.linspace(-1, 1, 401), -1.5
    results = np.asarray(crop(np.repeat(IMAGES[:1], 401, 0), sweep, size=(16, 16)))
    moved_by = (HEIGHT - HEIGHT * np.exp(-0.75)) / 400
    assert np.abs(np.diff(results, axis=0)).max() <= moved_by * 1.0001
    assert np.abs(results[-1] - results[0]).max() > 0.5


def test_first_and_second_derivatives(x64):
    alpha = random_alpha(len(IMAGES))

    @jax.jit
    def value(alpha):
        return jnp.sin(3 * geometry.crop(IMAGES, alpha, (11, 9))).sum()

    gradient = jax.jit(jax.grad(value))
    hessian = jax.jit(lambda a, v: jax.jvp(gradient, (a,), (v,))[1])
    step = 1e-6
    for direction in np.eye(4):
        by = step * np.tile(direction, (len(alpha), 1))
        first = (value(alpha + by) - value(alpha - by)) / (2 * step)
        np.testing.assert_allclose((gradient(alpha) @ direction).sum(), first, rtol=1e-6)
        second = (gradient(alpha + by) - gradient(alpha - by)) / (2 * step)
        assert relative_error(hessian(alpha, by / step), second) < 1e-6
        assert np.abs(second).min() > 0


def test_transform_draws_as_the_random_resized_crop():
    transform = Crop(16)
    assert alpha_names(transform) == geometry.NAMES
    alpha, beta = transform.sample(jax.random.key(0), 5000)
    assert beta is None
    down, right, log_area, log_aspect = np.asarray(alpha, float).T
    for place in (down, right):
        assert stats.kstest(place, stats.uniform(-1, 2).cdf).pvalue > 1e-3
    assert stats.kstest(np.exp(log_area), stats.uniform(0.08, 0.92).cdf).pvalue > 1e-3
    assert stats.kstest(np.exp(log_aspect), stats.loguniform(3 / 4, 4 / 3).cdf).pvalue > 1e-3
    error = 5 * np.sqrt(transform.alpha.variance / 5000)
    assert (np.abs(alpha.mean(0) - transform.alpha.mean) < error).all()
    x = (255 * IMAGES).astype(np.uint8)
    expected = crop(x / np.float32(255), alpha[:6], size=(16, 16))
    np.testing.assert_allclose(transform.apply(x, alpha[:6]), expected, atol=1e-6)
    assert transform.untransformed(x).shape == (6, 16, 16, 3)
    assert hash(Crop(16)) == hash(transform)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: geometry.crop(IMAGES, np.zeros((6, 3)), (4, 4)),
            r"\(6, 3\), not \(6, 4\): give \(crop_down",
        ),
        (lambda: Crop(8, Box([0.0], [1.0])), "distribution of 1 components: it needs 4"),
        (lambda: Crop(0), "size is 0: give a positive"),
    ],
)
def test_mistakes_are_named(no_shape_checks, call, message):
    with pytest.raises(ValueError, match=message):
        call()
