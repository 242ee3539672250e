"""Corruptions: against SciPy, Pillow and Matplotlib, their statistics, seeds and severities."""

import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib import colors
from PIL import Image
from scipy import ndimage, signal, stats

from invclr_jax.transforms.corruptions import NAMES, SEVERITIES, blurs, corrupt, digital, weather
from invclr_jax.transforms.corruptions.reflection import mirrored, smooth
from invclr_jax.transforms.warping import interpolate

KEY = jax.random.key(0)


def scenes(n, height=32, width=32):
    """Smooth 8-bit pictures with some texture."""
    rng = np.random.default_rng(1)
    pictures = ndimage.gaussian_filter(rng.normal(size=(n, height, width, 3)), (0, 3, 3, 0))
    pictures = 0.5 + 0.25 * pictures / pictures.std() + rng.normal(0, 0.03, pictures.shape)
    return (255 * np.clip(pictures, 0, 1)).astype(np.uint8)


X = scenes(6)
FLOATS = X / np.float32(255)


@pytest.mark.parametrize("name", NAMES)
def test_every_corruption_keeps_its_promises(name):
    corrupted = {s: corrupt(X, name, s, KEY) for s in (1, 5)}
    again = corrupt(X, name, 1, KEY)
    np.testing.assert_array_equal(again, corrupted[1])
    # Picture i depends on (key, i) alone.
    np.testing.assert_array_equal(corrupt(X[:2], name, 5, KEY), corrupted[5][:2])
    floats = corrupt(FLOATS, name, 5, KEY)
    assert floats.dtype == np.float32
    assert 0 <= floats.min() <= floats.max() <= 1
    assert np.abs(255 * floats - corrupted[5]).max() <= 1.01  # 8-bit results are cut off
    assert corrupted[5].dtype == np.uint8
    assert corrupted[5].shape == X.shape
    distance = {s: np.abs(c.astype(float) - X).mean() for s, c in corrupted.items()}
    assert distance[1] > 0.1
    # Elastic maps displace less and less at higher severities, but more and more roughly.
    assert distance[1] < distance[5] or name == "elastic_transform"
    oblong = scenes(2, 20, 28)
    assert corrupt(oblong, name, 3, KEY).shape == oblong.shape


@pytest.mark.parametrize("name", ["gaussian_noise", "contrast", "fog", "jpeg_compression"])
def test_severity_orders_the_damage(name):
    damage = [np.abs(corrupt(X, name, s, KEY).astype(float) - X).mean() for s in SEVERITIES]
    assert damage == sorted(damage)


@pytest.mark.parametrize("name", ["gaussian_noise", "shot_noise", "snow", "elastic_transform"])
def test_keys_and_pictures_differ(name):
    same = np.repeat(X[:1], 3, 0)
    results = corrupt(same, name, 3, KEY).astype(int)
    assert np.abs(results[0] - results[1]).max() > 5
    assert np.abs(corrupt(same, name, 3, jax.random.key(1)) - results).max() > 5


def test_more_than_one_part_is_like_one(monkeypatch):
    whole = corrupt(X, "impulse_noise", 5, KEY)
    monkeypatch.setattr("invclr_jax.transforms.corruptions._AT_ONCE", 4)
    np.testing.assert_array_equal(corrupt(X, "impulse_noise", 5, KEY), whole)


# Noise -----------------------------------------------------------------------------------------

FLAT = np.full((8, 32, 32, 3), 0.4, np.float32)


def test_gaussian_noise_is_normal():
    noise = (corrupt(FLAT, "gaussian_noise", 4, KEY) - 0.4) / 0.09
    assert stats.kstest(noise.ravel(), stats.norm.cdf).pvalue > 1e-3


def test_shot_noise_is_poisson():
    counts = np.rint(corrupt(FLAT, "shot_noise", 5, KEY) * 50).astype(int).ravel()
    values, observed = np.unique(counts, return_counts=True)
    law = stats.poisson(20)
    usual = (values >= 10) & (values <= 32)
    expected = law.pmf(values[usual]) * len(counts)
    statistic = ((observed[usual] - expected) ** 2 / expected).sum()
    assert stats.chi2(usual.sum()).sf(statistic) > 1e-3


def test_impulse_noise_is_salt_and_pepper():
    result = corrupt(FLAT, "impulse_noise", 5, KEY)
    total = result.size
    for value in (0, 1):
        assert abs((result == value).mean() - 0.035) < 4 * np.sqrt(0.035 / total)
    assert abs((result == np.float32(0.4)).mean() - 0.93) < 4 * np.sqrt(0.07 / total)


# Blurs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("severity", "radius", "deviation"), [(1, 0.3, 0.4), (3, 0.5, 0.6), (4, 1, 0.2), (5, 1.5, 0.1)]
)
def test_defocus_convolves_with_a_smooth_disk(severity, radius, deviation):
    grid = np.arange(-8, 9)
    inside = (grid[:, None] ** 2 + grid[None] ** 2 <= radius**2).astype(float)
    taps = np.exp(-np.array([1, 0, 1]) / (2 * deviation**2))
    taps /= taps.sum()
    kernel = signal.convolve2d(inside / inside.sum(), np.outer(taps, taps), "same")
    expected = np.stack(
        [ndimage.correlate(p, kernel[..., None], mode="mirror") for p in FLOATS.astype(float)]
    )
    np.testing.assert_allclose(corrupt(FLOATS, "defocus_blur", severity, KEY), expected, atol=1e-5)


def test_glass_moves_pixels_as_the_published_loop():
    """The loop 'swaps' views of rows, from the last pixel to the first."""
    image, key = np.random.default_rng(2).random((32, 32, 3)).astype(np.float32), KEY
    steps = np.asarray(jax.random.bernoulli(key, 0.5, (2, 32, 32))).astype(int)
    looped = image.copy()
    for h in range(31, 1, -1):
        for w in range(31, 1, -1):
            there = h - steps[0, h, w], w - steps[1, h, w]
            looped[h, w], looped[there] = looped[there], looped[h, w]
    np.testing.assert_array_equal(blurs._jostle(jnp.asarray(image), key), looped)
    assert abs(steps.mean() - 0.5) < 4 * 0.5 / np.sqrt(steps.size)
    # At severity 1 the blur is nothing: pixels move and do not change.
    pixels = set(map(tuple, X[0].reshape(-1, 3).tolist()))
    assert set(map(tuple, corrupt(X, "glass_blur", 1, KEY)[0].reshape(-1, 3).tolist())) <= pixels


@pytest.mark.parametrize("degrees", [0.0, 30.0, -45.0, 90.0])
def test_motion_smears_along_a_line(degrees):
    """ImageMagick's definition, pixel by pixel."""
    image, radius, deviation = X[0, :, :, 0] / 255, 4, 2.0
    weights = np.array([np.exp(-(i**2) / (2 * deviation**2)) for i in range(2 * radius + 1)])
    angle = np.deg2rad(degrees)
    expected = np.zeros_like(image)
    for y in range(32):
        for x in range(32):
            for i, weight in enumerate(weights / weights.sum()):
                row = int(np.clip(y + np.ceil(np.float32(i * np.sin(angle)) - 0.5), 0, 31))
                column = int(np.clip(x + np.ceil(np.float32(i * np.cos(angle)) - 0.5), 0, 31))
                expected[y, x] += weight * image[row, column]
    ours = blurs.smear(
        jnp.asarray(image, jnp.float32)[None, :, :, None], jnp.array([degrees]), radius, deviation
    )
    np.testing.assert_allclose(ours[0, :, :, 0], expected, atol=1e-5)


def zoomed_by_scipy(image, factor):
    side = image.shape[0]
    part = int(np.ceil(side / factor))
    top = (side - part) // 2
    large = ndimage.zoom(image[top : top + part, top : top + part], (factor, factor, 1), order=1)
    cut = (large.shape[0] - side) // 2
    return large[cut : cut + side, cut : cut + side]


def test_zoom_blur_is_scipys():
    image = FLOATS[0].astype(float)
    zooms = [zoomed_by_scipy(image, factor) for factor in np.arange(1, 1.16, 0.01)]
    expected = (image + sum(zooms)) / (len(zooms) + 1)
    np.testing.assert_allclose(corrupt(FLOATS, "zoom_blur", 3, KEY)[0], expected, atol=1e-5)


# Weather ---------------------------------------------------------------------------------------


def test_fractal_is_diamond_square():
    """The same draws, put in place by loops over squares and diamonds on a torus."""
    size, decay = 8, 2.5
    ours = np.asarray(weather._landscape(KEY, size, decay))
    heights, step, rough = np.zeros((size, size)), size, 100.0
    every = iter(np.asarray(jax.random.uniform(KEY, (size**2 - 1,), minval=-1.0)))
    for _ in range(3):
        half, count = step // 2, size // step
        draws = np.array([next(every) for _ in range(3 * count**2)]).reshape(3, count, count)
        at = lambda y, x: heights[y % size, x % size]  # noqa: E731
        for i in range(count):
            for j in range(count):
                y, x = i * step, j * step
                corners = at(y, x) + at(y + step, x) + at(y, x + step) + at(y + step, x + step)
                heights[y + half, x + half] = corners / 4 + rough**2 * draws[0][i, j]
        for i in range(count):
            for j in range(count):
                y, x = i * step, j * step
                top = at(y, x) + at(y, x + step) + at(y + half, x + half) + at(y - half, x + half)
                left = at(y, x) + at(y + step, x) + at(y + half, x + half) + at(y + half, x - half)
                heights[y, x + half] = top / 4 + rough**2 * draws[1][i, j]
                heights[y + half, x] = left / 4 + rough**2 * draws[2][i, j]
        step, rough = half, rough / decay
    heights = (heights - heights.min()) / (heights.max() - heights.min())
    np.testing.assert_allclose(ours, heights, atol=1e-5)


def test_fog_keeps_the_brightest():
    heights = np.asarray(weather.fractal(jax.random.split(KEY, 6), 32, decay=2.0))[..., None]
    ours = weather.fog(jnp.asarray(FLOATS), jax.random.split(KEY, 6), (1.0, 2.0))
    most = FLOATS.max(axis=(1, 2, 3), keepdims=True)
    np.testing.assert_allclose(ours, (FLOATS + heights) * most / (most + 1), atol=1e-5)
    np.testing.assert_array_equal(heights.min(axis=(1, 2, 3)), 0)


def test_snow_whitens_and_lays_flakes_twice():
    strength = (0.25, 0.3, 2.25, 0.6, 12, 6.0, 0.85)
    keys = jax.random.split(KEY, 6)
    ours = np.asarray(weather.snow(jnp.asarray(FLOATS), keys, strength))
    grey = (FLOATS * [0.299, 0.587, 0.114]).sum(-1, keepdims=True)
    white = 0.85 * FLOATS + 0.15 * np.maximum(FLOATS, 1.5 * grey + 0.5)
    layers = ours - white
    np.testing.assert_allclose(layers, layers[..., :1].repeat(3, -1), atol=1e-5)
    np.testing.assert_allclose(layers, layers[:, ::-1, ::-1], atol=1e-5)  # a half turn
    assert layers.min() > -1e-5
    assert 0.02 < layers.mean() < 0.5


def test_frost_adds_ice_only():
    keys = jax.random.split(KEY, 6)
    added = np.asarray(weather.frost(jnp.asarray(FLOATS), keys, (0.9, 0.4))) - 0.9 * FLOATS
    assert added.min() >= -1e-6
    assert 0.3 < added.max() <= 0.4 + 1e-6
    assert (added[..., 2] >= added[..., 0] - 1e-6).all()


# Digital ---------------------------------------------------------------------------------------


def test_brightness_is_that_of_hsv():
    images = FLOATS.copy()
    images[0, 0] = 0  # black becomes grey
    hsv = colors.rgb_to_hsv(images.astype(float))
    hsv[..., 2] = np.clip(hsv[..., 2] + 0.3, 0, 1)
    ours = corrupt(images, "brightness", 5, KEY)
    np.testing.assert_allclose(ours, colors.hsv_to_rgb(hsv), atol=1e-5)


def test_contrast_moves_channels_to_their_means():
    means = FLOATS.astype(float).mean(axis=(1, 2), keepdims=True)
    expected = 0.15 * FLOATS + 0.85 * means
    np.testing.assert_allclose(corrupt(FLOATS, "contrast", 5, KEY), expected, atol=1e-5)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_pixelation_is_pillows(severity):
    share = (0.95, 0.9, 0.85, 0.75, 0.65)[severity - 1]
    small = int(32 * share)
    for ours, pixels in zip(corrupt(X, "pixelate", severity, KEY), X, strict=True):
        picture = Image.fromarray(pixels).resize((small, small), Image.Resampling.BOX)
        theirs = np.asarray(picture.resize((32, 32), Image.Resampling.BOX), int)
        difference = np.abs(ours - theirs)
        assert difference.max() <= 1  # where Pillow's fixed point rounds a half the other way
        assert (difference > 0).mean() < 0.02


def test_jpeg_is_pillows():
    for ours, pixels in zip(corrupt(X, "jpeg_compression", 5, KEY), X, strict=True):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=40)
        np.testing.assert_array_equal(ours, np.asarray(Image.open(file)))


def test_elastic_map_sends_corners_to_corners(x64):
    rows, columns = digital._affine_sources(KEY, 32, 32, 2.0)
    displaced = np.array([[26, 26], [26, 6], [6, 6]]) + np.asarray(
        jax.random.uniform(KEY, (3, 2), minval=-2.0, maxval=2.0)
    )
    for (y, x), (row, column) in zip(displaced, [(26, 26), (26, 6), (6, 6)], strict=True):
        # Affine: exact by linear extrapolation from the first pixels.
        found = [
            v[0, 0] + y * (v[1, 0] - v[0, 0]) + x * (v[0, 1] - v[0, 0]) for v in (rows, columns)
        ]
        np.testing.assert_allclose(found, (row, column), atol=1e-9)


@pytest.mark.parametrize(("edge", "mode"), [(0.0, "mirror"), (0.5, "reflect")])
def test_mirrors_are_scipys(x64, edge, mode):
    image = np.random.default_rng(3).random((9, 7))
    rows, columns = np.random.default_rng(4).uniform(-20, 30, (2, 9, 7))
    ours = interpolate(
        jnp.asarray(image)[None, :, :, None],
        mirrored(jnp.asarray(rows), 9, edge=edge)[None],
        mirrored(jnp.asarray(columns), 7, edge=edge)[None],
    )
    theirs = ndimage.map_coordinates(image, [rows, columns], order=1, mode=mode)
    np.testing.assert_allclose(ours[0, :, :, 0], theirs, atol=1e-12)


@pytest.mark.parametrize("deviation", [0.0, 0.96, 6.4])
def test_smoothing_is_scipys(x64, deviation):
    values = np.random.default_rng(5).random((32, 20))
    theirs = ndimage.gaussian_filter(values, deviation, mode="reflect", truncate=3)
    ours = smooth(jnp.asarray(values)[None, :, :, None], deviation)
    np.testing.assert_allclose(ours[0, :, :, 0], theirs, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: corrupt(X, "rain", 1, KEY),
            "no corruption 'rain': use one of gaussian_noise, shot",
        ),
        (lambda: corrupt(X, "fog", 6, KEY), "severity is 6: use an integer from 1 to 5"),
        (lambda: corrupt(X, "fog", 0, KEY), "severity is 0"),
        (lambda: corrupt(X[..., :1], "fog", 1, KEY), "colour operations need three"),
        (lambda: corrupt(X.astype(int), "fog", 1, KEY), "divide 8-bit images by 255"),
    ],
)
def test_mistakes_are_named(no_shape_checks, call, message):
    with pytest.raises(ValueError, match=message):
        call()
