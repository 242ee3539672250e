"""Crops against Pillow, torchvision's rule written out, and the statistics of the sampler."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import stats

from invclr_jax.transforms import geometry
from tests.reference import relative_error

property_test = settings(deadline=None, max_examples=25)
HEIGHT, WIDTH = 13, 17
crop_and_resize = jax.jit(geometry.crop_and_resize, static_argnames="size")
crop_boxes = jax.jit(geometry.crop_boxes, static_argnums=(1, 2))


def pillow(image, size, kernel, box=None):
    """Resizes each channel (from a box: left, top, right, bottom) in floating point."""
    channels = [Image.fromarray(np.ascontiguousarray(c)) for c in np.moveaxis(image, -1, 0)]
    assert channels[0].mode == "F"
    return np.stack([np.asarray(c.resize(size[::-1], kernel, box)) for c in channels], -1)


def cut(image, box):
    top, left, height, width = box
    return image[top : top + height, left : left + width]


def random_boxes(seed, n, height=HEIGHT, width=WIDTH):
    rng = np.random.default_rng(seed)
    sides = np.stack([rng.integers(1, height + 1, n), rng.integers(1, width + 1, n)], 1)
    corner = np.floor(rng.uniform(size=(n, 2)) * (np.array([height, width]) - sides + 1))
    return np.concatenate([corner.astype(int), sides], 1)


def random_images(seed, n, height=HEIGHT, width=WIDTH):
    return np.random.default_rng(seed).random((n, height, width, 3), np.float32)


@pytest.mark.parametrize("size", [(8, 6), (32, 40)])
def test_crops_equal_pillows_bilinear(size):
    images, boxes = random_images(0, 20), random_boxes(1, 20)
    ours = crop_and_resize(images, boxes, None, size=size)
    theirs = [
        pillow(cut(image, box), size, Image.Resampling.BILINEAR)
        for image, box in zip(images, boxes, strict=True)
    ]
    np.testing.assert_allclose(ours, np.stack(theirs), atol=2e-6)


def test_fractional_boxes_equal_pillows_inside():
    """Pillow's `resize(box=…)` looks beyond the box; away from its edge the two agree."""
    image, size = random_images(0, 1, 30, 40)[0], (9, 11)
    top, left, height, width = box = (2.25, 3.3, 20.5, 30.6)
    ours = crop_and_resize(image[None], np.array([box]), None, size=size)[0]
    corners = (left, top, left + width, top + height)
    theirs = pillow(image, size, Image.Resampling.BILINEAR, corners)
    np.testing.assert_allclose(ours[1:-1, 1:-1], theirs[1:-1, 1:-1], atol=2e-6)


def test_difference_from_lanczos_is_as_stated():
    """On waves of 6 to 16 pixels, enlarged 1.5 times: 0.014 on average, 0.061 at most."""
    y, x = np.mgrid[:32, :32] / 32
    waves = [np.sin(2 * np.pi * (f * x + g * y)) for f, g in ((1, 2), (3, -1), (2, 5))]
    image = (0.5 + 0.4 * np.stack(waves, -1)).astype(np.float32)
    box, size = (4, 6, 20, 22), (32, 32)
    ours = crop_and_resize(image[None], np.array([box]), None, size=size)[0]
    difference = np.abs(ours - pillow(cut(image, box), size, Image.Resampling.LANCZOS))
    assert 0.013 < difference.mean() < 0.0145
    assert 0.06 < difference.max() < 0.062


def test_eight_bit_crops_are_within_a_level_of_pillows():
    """What torchvision users have is Pillow on 8-bit images, which rounds after each pass."""
    pixels = np.random.default_rng(2).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    boxes = random_boxes(3, 12)
    images = np.repeat(pixels[None] / np.float32(255), len(boxes), 0)
    ours = 255 * np.asarray(crop_and_resize(images, boxes, None, size=(32, 32)))
    for crop, box in zip(ours, boxes, strict=True):
        theirs = Image.fromarray(cut(pixels, box)).resize((32, 32), Image.Resampling.BILINEAR)
        assert np.abs(crop - np.asarray(theirs, float)).max() < 1.01


def test_box_of_the_whole_image_is_the_identity(precision):
    images = random_images(4, 3).astype(precision)
    whole = np.tile([0, 0, HEIGHT, WIDTH], (3, 1))
    result = crop_and_resize(images, whole, None, size=(HEIGHT, WIDTH))
    assert result.dtype == precision
    np.testing.assert_array_equal(result, images)
    np.testing.assert_array_equal(geometry.resize(images, (HEIGHT, WIDTH)), images)


@property_test
@given(st.integers(0, 2**31 - 1))
def test_crops_keep_range_and_constants(seed):
    images, boxes = random_images(seed, 4), random_boxes(seed, 4)
    images[0] = images[0, 0, 0]
    result = np.asarray(crop_and_resize(images, boxes, None, size=(9, 7)))
    for image, crop, box in zip(images, result, boxes, strict=True):
        inside = cut(image, box)
        assert crop.min() >= inside.min() - 1e-6
        assert crop.max() <= inside.max() + 1e-6
    np.testing.assert_allclose(result[0], np.broadcast_to(images[0, 0, 0], (9, 7, 3)), atol=1e-6)


@property_test
@given(st.integers(0, 2**31 - 1))
def test_flips(seed):
    images, boxes = random_images(seed, 4), random_boxes(seed, 4)
    coins = np.array([True, False, True, False])
    mirrored = geometry.horizontal_flip(images, coins)
    np.testing.assert_array_equal(mirrored[::2], images[::2, :, ::-1])
    np.testing.assert_array_equal(geometry.horizontal_flip(mirrored, coins), images)
    plain = crop_and_resize(images, boxes, None, size=(9, 7))
    flipped = crop_and_resize(images, boxes, coins, size=(9, 7))
    np.testing.assert_allclose(flipped, geometry.horizontal_flip(plain, coins), atol=1e-6)


def test_jit_vmap_and_image_gradient_agree(x64):
    images, boxes = random_images(5, 3).astype(float), random_boxes(6, 3)
    coins, size = np.array([True, False, True]), (6, 5)
    together = crop_and_resize(images, boxes, coins, size=size)
    one_by_one = jax.vmap(
        lambda image, box, coin: geometry.crop_and_resize(image[None], box[None], coin[None], size)
    )(images, boxes, coins)[:, 0]
    assert relative_error(together, one_by_one) < 1e-12
    # A linear map: the gradient of a weighted sum holds the weights' pull-back.
    weights = np.random.default_rng(7).normal(size=together.shape)
    gradient = jax.grad(lambda x: (weights * crop_and_resize(x, boxes, coins, size=size)).sum())
    np.testing.assert_allclose((gradient(images) * images).sum(), (weights * together).sum())


def test_bfloat16_crops_place_pixels_exactly():
    images = jnp.asarray(random_images(8, 2, 40, 300), jnp.bfloat16)
    boxes = np.array([[3, 201, 20, 40], [0, 255, 40, 45]])
    result = crop_and_resize(images, boxes, None, size=(20, 40))
    assert result.dtype == jnp.bfloat16
    np.testing.assert_array_equal(result[0], images[0, 3:23, 201:241])


# Sampling ------------------------------------------------------------------------------------


DRAWS, LOW, HIGH = 4000, 0.08, 1.0


@pytest.fixture(scope="module")
def crops():
    return jax.tree.map(np.asarray, geometry.sample_crops(jax.random.key(0), DRAWS))


def boxes_by_loop(crops, height, width):
    """torchvision's rule, one image and one attempt at a time, in float64."""
    boxes = []
    for area, aspect, position in zip(*(np.asarray(c, np.float64) for c in crops), strict=True):
        for a, r in zip(area, aspect, strict=True):
            h = round(np.sqrt(a * height * width / r))
            w = round(np.sqrt(a * height * width * r))
            if 0 < h <= height and 0 < w <= width:
                corner = [int(position[0] * (height - h + 1)), int(position[1] * (width - w + 1))]
                break
        else:
            h, w = height, width
            if width / height < 3 / 4:
                h = round(width / (3 / 4))
            elif width / height > 4 / 3:
                w = round(height * (4 / 3))
            corner = [(height - h) // 2, (width - w) // 2]
        boxes.append([*corner, h, w])
    return np.array(boxes)


@pytest.mark.parametrize(("height", "width"), [(32, 32), (20, 200), (150, 9), (1, 1), (1, 7)])
def test_boxes_follow_torchvisions_rule(crops, height, width):
    crops = geometry.Crops(*(draw[:500] for draw in crops))
    boxes = crop_boxes(crops, height, width)
    np.testing.assert_array_equal(boxes, boxes_by_loop(crops, height, width))
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] >= 1).all()
    assert (boxes[:, :2] + boxes[:, 2:] <= np.array([[height, width]])).all()


def test_the_fallback_is_needed_and_central(crops):
    boxes = np.asarray(crop_boxes(crops, 20, 200))
    fallback = (boxes == [0, 86, 20, 27]).all(1)
    assert 0.05 < fallback.mean() < 0.95


def test_statistics_of_the_draws(crops):
    assert crops.area.shape == crops.aspect.shape == (DRAWS, geometry.ATTEMPTS)
    area, aspect, position = (np.asarray(c).ravel() for c in crops)
    assert stats.kstest(area, stats.uniform(LOW, HIGH - LOW).cdf).pvalue > 1e-3
    log_width = np.log(16 / 9)
    assert stats.kstest(np.log(aspect), stats.uniform(-log_width / 2, log_width).cdf).pvalue > 1e-3
    assert stats.kstest(position, stats.uniform().cdf).pvalue > 1e-3
    # Neither between the quantities, nor between attempts, nor between images.
    columns = np.concatenate([crops.area[:, :2], crops.aspect[:, :2], crops.position], 1)
    assert np.abs(np.corrcoef(columns.T) - np.eye(6)).max() < 5 / np.sqrt(DRAWS)
    neighbours = np.corrcoef(columns[:-1].T, columns[1:].T)[:6, 6:]
    assert np.abs(neighbours).max() < 5 / np.sqrt(DRAWS)


def test_boxes_are_spread_as_by_rejection(crops):
    """Areas and corners of large images have the law of 'draw until it fits', up to rounding."""
    side, rng = 2000, np.random.default_rng(3)
    area = rng.uniform(LOW, HIGH, 20 * DRAWS)
    aspect = np.exp(rng.uniform(-1, 1, 20 * DRAWS) * np.log(4 / 3))
    fits = (area * aspect <= 1) & (area / aspect <= 1)
    top, left, height, width = np.asarray(crop_boxes(crops, side, side), float).T
    assert stats.ks_2samp(height * width / side**2, area[fits]).pvalue > 1e-3
    assert stats.ks_2samp(width / height, aspect[fits]).pvalue > 1e-3
    for corner, length in ((top, height), (left, width)):
        roomy = side - length > 100
        place = corner[roomy] / (side - length[roomy])
        assert stats.kstest(place, stats.uniform().cdf).pvalue > 1e-3


# Mistakes ------------------------------------------------------------------------------------

IMAGES, BOXES = np.zeros((2, 4, 4, 3), np.float32), np.ones((2, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: geometry.resize(IMAGES[0], (2, 2)), r"shape \(4, 4, 3\)"),
        (lambda: geometry.crop_and_resize(IMAGES, BOXES[0], None, (2, 2)), r"not \(2, 4\): give"),
        (lambda: geometry.crop_and_resize(IMAGES, BOXES, BOXES, (2, 2)), r"flip .*not \(2,\)"),
        (lambda: geometry.horizontal_flip(IMAGES, np.ones(3, bool)), r"flip .*\(3,\), not \(2,\)"),
        (lambda: geometry.horizontal_flip(IMAGES.astype(np.uint8), np.ones(2)), "divide 8-bit"),
    ],
)
def test_mistakes_are_named(no_shape_checks, call, message):
    with pytest.raises(ValueError, match=message):
        call()
