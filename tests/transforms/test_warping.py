"""Affine maps against scipy.ndimage, Pillow and NumPy, and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from invclr_jax.transforms import geometry, warping
from invclr_jax.transforms.base import Box, alpha_names
from invclr_jax.transforms.spatial import Affine
from tests.reference import relative_error

HEIGHT, WIDTH = 9, 12
affine = jax.jit(geometry.affine, static_argnames="antialias")


def random_images(n, channels=3, height=HEIGHT, width=WIDTH):
    return np.random.default_rng(0).random((n, height, width, channels))


def waves(n, size):
    """Smooth pictures, `[n, size, size, 2]`."""
    y, x = np.mgrid[:size, :size] / size
    rng = np.random.default_rng(1)
    slopes = rng.uniform(-2, 2, (n, 2, 2))
    return np.sin(2 * np.pi * np.einsum("ncd,dyx->nyxc", slopes, np.stack([y, x])))


def random_alpha(n, log2_scale=(0.0, 0.5)):
    rng = np.random.default_rng(2)
    alpha = rng.uniform(-0.3, 0.3, (n, 6))
    alpha[:, 3] = rng.uniform(*log2_scale, n)
    return alpha


def forward_matrix(alpha):
    """R·D·S·scale, factor by factor, in coordinates (down, right)."""
    turns, _, _, log2_scale, shear_down, shear_right = alpha
    angle = 2 * np.pi * turns
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    down, right = np.array([[1, shear_down], [0, 1]]), np.array([[1, 0], [shear_right, 1]])
    return rotation @ down @ right * 2**log2_scale


def by_scipy(image, alpha):
    """The same map by ndimage.affine_transform, which wants the inverse."""
    shape = np.array(image.shape[:2])
    centre, inverse = (shape - 1) / 2, np.linalg.inv(forward_matrix(alpha))
    offset = centre - inverse @ (centre + alpha[1:3] * shape)
    return np.stack(
        [
            ndimage.affine_transform(plane, inverse, offset, order=1, mode="nearest")
            for plane in np.moveaxis(image, -1, 0)
        ],
        axis=-1,
    )


@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("antialias", [True, False])
def test_equal_to_scipys(x64, channels, antialias):
    images, alpha = random_images(6, channels), random_alpha(6)
    ours = affine(images, alpha, antialias=antialias)
    theirs = [by_scipy(*pair) for pair in zip(images, alpha, strict=True)]
    np.testing.assert_allclose(ours, np.stack(theirs), atol=1e-12)


def test_identity_is_exact(precision):
    images = random_images(3).astype(precision)
    result = affine(images, np.zeros((3, 6), precision))
    assert result.dtype == precision
    np.testing.assert_array_equal(result, images)


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        ((0.25, 0, 0, 0, 0, 0), lambda x: np.rot90(x, 1, (1, 2))),
        ((-0.5, 0, 0, 0, 0, 0), lambda x: np.rot90(x, 2, (1, 2))),
        ((0, 1 / 9, 0, 0, 0, 0), lambda x: x[:, [0, *range(8)]]),
        ((0, 0, -2 / 9, 0, 0, 0), lambda x: x[:, :, [*range(2, 9), 8, 8]]),
        ((0, 0, 0, 1, 0, 0), lambda x: ndimage.zoom(x[:, 2:7, 2:7], (1, 1.8, 1.8, 1), order=1)),
    ],
)
def test_directions(x64, alpha, expected):
    images = random_images(2, height=9, width=9)
    ours = affine(images, np.tile(np.array(alpha, float), (2, 1)))
    np.testing.assert_allclose(ours, expected(images), atol=1e-12)


def test_shears_move_rows_and_columns():
    picture = np.zeros((1, 9, 9, 1), np.float32)
    picture[0, :, 6] = 1  # a line two pixels to the right of the centre
    right = affine(picture, np.array([[0, 0, 0, 0, 0, 0.5]], np.float32))[0, :, :, 0]
    np.testing.assert_array_equal(np.argmax(right[::2], 1), [4, 5, 6, 7, 8])
    down = affine(picture.swapaxes(1, 2), np.array([[0, 0, 0, 0, 0.5, 0]], np.float32))[0, :, :, 0]
    np.testing.assert_array_equal(np.argmax(down[:, ::2], 0), [4, 5, 6, 7, 8])


def test_rotation_is_pillows():
    """Pillow turns pictures of floats bilinearly too; its border is black, so look inside."""
    images = waves(1, 33)[..., :1]
    for degrees in (30, -77):
        ours = affine(images, np.array([[degrees / 360, 0, 0, 0, 0, 0]]))[0, :, :, 0]
        picture = Image.fromarray(images[0, :, :, 0].astype(np.float32))
        theirs = np.asarray(picture.rotate(degrees, Image.Resampling.BILINEAR))
        y, x = np.mgrid[:33, :33] - 16
        inside = y**2 + x**2 < 15**2
        np.testing.assert_allclose(ours[inside], theirs[inside], atol=2e-4)


def test_two_rotations_are_one():
    images = waves(4, 65)
    turn = lambda turns: np.eye(6)[:1] * np.array(turns)[:, None]  # noqa: E731
    first, second = np.array([0.03, 0.11, -0.2, 0.4]), np.array([0.05, -0.3, 0.07, 0.13])
    twice = affine(affine(images, turn(first)), turn(second))
    once = affine(images, turn(first + second))
    inside = np.hypot(*(np.mgrid[:65, :65] - 32)) < 31
    assert np.abs(twice - once)[:, inside].max() < 0.02
    assert np.abs(once - images)[:, inside].max() > 1  # the turns are large


@pytest.mark.parametrize("log2_shrinking", [1, 2, 3])
def test_shrinking_averages_as_pillows_resize(x64, log2_shrinking):
    """At 2, 4 and 8 times it is Pillow's antialiased filter to the last digit."""
    size, factor = 64, 2**log2_shrinking
    image = random_images(1, 1, size, size)
    ours = affine(image, np.eye(6)[3:4] * -log2_shrinking)[0, :, :, 0]
    small = size // factor
    picture = Image.fromarray(image[0, :, :, 0].astype(np.float32))
    theirs = np.asarray(picture.resize((small, small), Image.Resampling.BILINEAR))
    start = (size - small) // 2
    middle = ours[start : start + small, start : start + small]
    np.testing.assert_allclose(middle[1:-1, 1:-1], theirs[1:-1, 1:-1], atol=1e-6)


def test_shrinking_between_the_levels_and_beyond(x64):
    """Interpolated between triangles of 2^level pixels, and no wider than 8, against ndimage."""
    image, shrinking = random_images(1, 1, 16, 16)[0], np.array([0.3, 1.0, 1.75, 4.0])

    def averaged(width):
        triangle = 1 - np.abs(np.arange(-width, width + 1)) / width
        smooth = image
        for axis in (0, 1):
            smooth = ndimage.convolve1d(smooth, triangle / triangle.sum(), axis, mode="nearest")
        return smooth

    alpha = np.zeros((4, 6))
    alpha[:, 3], alpha[:, 0] = -shrinking, 0.1
    ours = affine(np.repeat(image[None], 4, 0), alpha)
    for result, row, level in zip(ours, alpha, np.minimum(shrinking, 3), strict=True):
        low = int(min(level, 2))
        mixed = (low + 1 - level) * averaged(2**low) + (level - low) * averaged(2 ** (low + 1))
        np.testing.assert_allclose(result, by_scipy(mixed, row), atol=1e-12)
    assert np.abs(ours[0] - affine(image[None], alpha[:1], antialias=False)[0]).max() > 0.01


# Derivatives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("log2_scale", [(0.1, 0.4), (-1.6, -1.2)])
def test_first_and_second_derivatives(x64, log2_scale):
    images, alpha = random_images(3, 2), random_alpha(3, log2_scale)

    @jax.jit
    def value(alpha):
        return jnp.sin(3 * geometry.affine(images, alpha)).sum()

    gradient = jax.jit(jax.grad(value))
    hessian = jax.jit(lambda a, v: jax.jvp(gradient, (a,), (v,))[1])
    step = 1e-6
    for direction in np.eye(6):
        by = step * np.tile(direction, (3, 1))
        first = (value(alpha + by) - value(alpha - by)) / (2 * step)
        np.testing.assert_allclose((gradient(alpha) @ direction).sum(), first, rtol=1e-6)
        second = (gradient(alpha + by) - gradient(alpha - by)) / (2 * step)
        assert relative_error(hessian(alpha, by / step), second) < 1e-6
        assert np.abs(second).min() > 0


def test_forward_reverse_vmap_and_pixels_agree(x64):
    images, alpha = random_images(3), random_alpha(3, (-0.5, 0.5))
    direction, weights = np.random.default_rng(3).normal(size=(3, 6)), random_images(3) - 0.5

    def value(images, alpha):
        return (weights * geometry.affine(images, alpha)).sum()

    by_pixels, by_alpha = jax.jit(jax.grad(value, (0, 1)))(images, alpha)
    _, forward = jax.jvp(lambda a: value(images, a), (jnp.asarray(alpha),), (direction,))
    np.testing.assert_allclose((by_alpha * direction).sum(), forward, rtol=1e-10)
    # Linear in the pixels: the gradient holds the weights' pull-back.
    np.testing.assert_allclose((by_pixels * images).sum(), value(images, alpha), rtol=1e-10)
    one_by_one = jax.vmap(lambda image, a: geometry.affine(image[None], a[None])[0])
    np.testing.assert_allclose(one_by_one(images, alpha), affine(images, alpha), atol=1e-12)


# The transform, mistakes -----------------------------------------------------------------------


def test_transform_draws_and_applies():
    transform = Affine(Box([-0.1, 0, 0, -1, 0, 0], [0.1, 0.2, 0, 1, 0, 0], warping.NAMES))
    x = (255 * random_images(4)).astype(np.uint8)
    alpha, beta = transform.sample(jax.random.key(0), 4)
    assert beta is None
    expected = affine((x / np.float32(255)), alpha)
    np.testing.assert_allclose(transform.apply(x, alpha, beta), expected, atol=1e-6)
    np.testing.assert_allclose(transform.untransformed(x), x / 255, atol=1e-6)
    assert alpha_names(transform) == warping.NAMES
    assert hash(Affine()) == hash(Affine())
    turned = Affine().sample(jax.random.key(1), 100)[0]
    assert np.abs(turned[:, 0]).max() <= 1 / 12
    assert not np.asarray(turned[:, 1:]).any()


def test_flat_pictures_have_one_row():
    line = np.random.default_rng(0).random((1, 1, 5, 1), np.float32)
    shifted = affine(line, np.array([[0, 0.7, 0.2, 0, 0, 0]], np.float32))
    np.testing.assert_allclose(shifted[0, 0, :, 0], line[0, 0, [0, 0, 1, 2, 3], 0], atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: geometry.affine(np.zeros((4, 4, 3)), np.zeros((4, 6))), r"shape \(4, 4, 3\)"),
        (
            lambda: geometry.affine(np.zeros((2, 4, 4, 3)), np.zeros((2, 5))),
            r"alpha has shape \(2, 5\), not \(2, 6\): give \(angle, shift_down",
        ),
        (lambda: Affine(Box([0.0], [1.0])), "distribution of 1 components: it needs 6"),
    ],
)
def test_mistakes_are_named(no_shape_checks, call, message):
    with pytest.raises(ValueError, match=message):
        call()
