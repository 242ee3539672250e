"""The whole image transform: golden pipeline, derivatives, statistics of its coins, mistakes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.transforms import colour, geometry
from invclr_jax.transforms.image import ImageBeta, ImageTransform
from tests.reference import relative_error

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
HEIGHT, WIDTH, SIZE = 10, 12, (9, 7)
TRANSFORM = ImageTransform(SIZE, MEAN, STD)


def normalised(images):
    return (np.asarray(images) - np.array(MEAN)) / np.array(STD)


def pictures(n, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, HEIGHT, WIDTH, 3), np.uint8)


def coins(n, value):
    return np.full(n, value)


def view(key):
    """The transform's randomness and result for one fixed batch."""
    x = pictures(40)
    alpha, beta = TRANSFORM.sample(key, len(x))
    return alpha, beta, TRANSFORM.apply(x, alpha, beta)


jitted_view = jax.jit(view)


@pytest.fixture(scope="module")
def drawn():
    return pictures(40), *jax.tree.map(np.asarray, jitted_view(jax.random.key(1)))


def test_golden_pipeline(golden, precision):
    """jitter where its coin says so, grey where its coin says so, then normalise (authors')."""
    data = golden("penalty")
    cast = lambda name: data[name].astype(precision)  # noqa: E731
    images, alpha, e, w1, w2 = map(cast, ("colour_images", "colour_alpha", "colour_e", "W1", "W2"))
    transform = ImageTransform(
        size=images.shape[1:3],
        mean=data["colour_pipeline_mean"],
        std=data["colour_pipeline_std"],
        variant="authors",
        crop=False,
        flip=False,
    )
    jitter, grey = (data[f"colour_pipeline_{c}_on"].astype(bool) for c in ("jitter", "grey"))
    beta = ImageBeta(None, coins(len(images), False), jitter, grey)

    def projection(alpha):
        seen = transform.apply(images, alpha, beta).reshape(len(images), -1)
        z = jnp.tanh(seen @ w1) @ w2
        values = (e * z / jnp.linalg.norm(z, axis=1, keepdims=True)).sum(1)
        return values.sum(), (z, values)

    gradient, (z, values) = jax.jit(jax.grad(projection, has_aux=True))(alpha)
    limit = 1e-10 if precision == np.float64 else 1e-4
    assert relative_error(z, data["colour_pipeline_z"]) < limit
    assert relative_error(values, data["colour_pipeline_F"]) < limit
    assert relative_error(gradient, data["colour_pipeline_grad"]) < limit
    assert not gradient[~jitter].any()
    np.testing.assert_allclose(transform.alpha.low, data["colour_lower"])
    np.testing.assert_allclose(transform.alpha.high, data["colour_upper"])


def test_apply_composes_its_parts(drawn):
    x, alpha, beta, result = drawn
    boxes = geometry.crop_boxes(beta.crops, HEIGHT, WIDTH)
    images = np.asarray(geometry.crop_and_resize(x / np.float32(255), boxes, beta.flip, SIZE))
    where = lambda coin, a, b: np.where(coin[:, None, None, None], a, b)  # noqa: E731
    images = where(beta.jitter, colour.colour_jitter(images, alpha), images)
    images = where(beta.grey, np.repeat(colour.greyscale(images), 3, -1), images)
    assert result.shape == (len(x), *SIZE, 3)
    np.testing.assert_allclose(result, normalised(images), atol=2e-5)
    assert 0 < beta.jitter.mean() < 1
    assert 0 < beta.grey.mean() < 1
    assert 0 < beta.flip.mean() < 1


def test_eight_bit_and_float_images_agree(drawn):
    x, alpha, beta, result = drawn
    as_floats = TRANSFORM.apply(x / np.float32(255), alpha, beta)
    np.testing.assert_allclose(as_floats, result, atol=2e-5)


def test_vmap_over_keys_is_a_loop_over_keys():
    keys = jax.random.split(jax.random.key(2), 3)
    together = jax.jit(jax.vmap(view))(keys)[-1]
    for result, key in zip(together, keys, strict=True):
        np.testing.assert_allclose(result, jitted_view(key)[-1], atol=2e-5)
    assert np.abs(together[0] - together[1]).max() > 0.1


def test_derivatives_in_alpha_match_finite_differences(x64):
    x, n = 0.35 + 0.25 * pictures(3) / 255, 3  # mid-range: no pixel reaches the clip's kinks
    crops = geometry.sample_crops(jax.random.key(3), n)
    beta = ImageBeta(crops, coins(n, True), np.array([True, True, False]), coins(n, False))
    alpha = jnp.array([[1.1, 0.9, 1.2, 0.03], [0.9, 1.1, 1.0, 0.01], [1.2, 1.0, 0.9, -0.02]])

    @jax.jit
    def value(alpha):
        return jnp.sin(TRANSFORM.apply(x, alpha, beta)).sum()

    gradient = jax.jit(jax.grad(value))
    direction = np.random.default_rng(4).normal(size=alpha.shape)
    step = 1e-5 * direction
    first = (value(alpha + step) - value(alpha - step)) / 2e-5
    second = (gradient(alpha + step) - gradient(alpha - step)) / 2e-5
    product = jax.jit(jax.grad(lambda a: (gradient(a) * direction).sum()))(alpha)
    np.testing.assert_allclose((gradient(alpha) * direction).sum(), first, rtol=1e-7)
    assert relative_error(product, second) < 1e-7
    assert not gradient(alpha)[2].any()
    assert np.abs(second[:2]).min() > 0


def test_untransformed_images_are_only_normalised():
    x = pictures(2)
    plain = dataclasses.replace(TRANSFORM, size=(HEIGHT, WIDTH)).untransformed(x)
    np.testing.assert_allclose(plain, normalised(x / 255), atol=1e-5)
    resized = normalised(geometry.resize(x / np.float32(255), SIZE))
    np.testing.assert_allclose(TRANSFORM.untransformed(x), resized, atol=1e-5)


@pytest.mark.parametrize("penalised", [("colour",), ("colour", "crop")])
def test_pictures_that_are_not_cropped_have_the_whole_size(penalised):
    options = {"penalised": penalised, "whole_size": (HEIGHT, WIDTH)}
    transform, x = ImageTransform(SIZE, MEAN, STD, **options), pictures(3)
    np.testing.assert_allclose(transform.untransformed(x), normalised(x / 255), rtol=0, atol=1e-5)
    assert transform.apply(x, *transform.sample(jax.random.key(0), 3)).shape[1:3] == SIZE
    still, shifted = transform.shifts()
    for whole in (still, *shifted.values()):
        assert whole.apply(x, *whole.sample(jax.random.key(0), 3)).shape == x.shape
    plain = dataclasses.replace(still, jitter_probability=0.0)
    apart = plain.apply(x, *plain.sample(jax.random.key(1), 3)) - normalised(x / 255)
    assert np.abs(apart).max() < 1e-5


def test_colour_alone():
    """The robustness experiments' transform: jitter always, no crop, flip or grey."""
    transform = dataclasses.replace(
        TRANSFORM,
        size=(HEIGHT, WIDTH),
        strength=0.875,
        jitter_probability=1,
        grey_probability=0,
        crop=False,
        flip=False,
    )
    x = pictures(8)
    alpha, beta = transform.sample(jax.random.key(5), 8)
    expected = normalised(colour.colour_jitter(x / np.float32(255), alpha))
    np.testing.assert_allclose(transform.apply(x, alpha, beta), expected, atol=2e-5)
    assert beta.crops is None


@pytest.mark.parametrize(
    ("strength", "low", "high", "turns"),
    [(0.5, 0.6, 1.4, 0.1), (0, 1, 1, 0), (1.25, 0, 2, 0.25), (2, 0, 2.6, 0.4)],
)
def test_strength_sets_the_law_of_alpha(strength, low, high, turns):
    box = dataclasses.replace(TRANSFORM, strength=strength).alpha
    np.testing.assert_allclose(box.low, [low, low, low, -turns], atol=1e-12)
    np.testing.assert_allclose(box.high, [high, high, high, turns], atol=1e-12)


def test_coins_have_their_probabilities_and_are_independent():
    n, transform = 4000, dataclasses.replace(TRANSFORM, jitter_probability=0.7)
    alpha, beta = jax.tree.map(np.asarray, transform.sample(jax.random.key(6), n))
    tossed = np.stack([beta.flip, beta.jitter, beta.grey]).astype(float)
    expected = np.array([0.5, 0.7, 0.2])
    assert (np.abs(tossed.mean(1) - expected) < 4 * np.sqrt(expected * (1 - expected) / n)).all()
    columns = np.concatenate([tossed, alpha.T, beta.crops.position.T, beta.crops.area.T[:1]])
    assert np.abs(np.corrcoef(columns) - np.eye(len(columns))).max() < 5 / np.sqrt(n)
    neighbours = np.corrcoef(columns[:, 1:], columns[:, :-1])[: len(columns), len(columns) :]
    assert np.abs(neighbours).max() < 5 / np.sqrt(n)


def test_certain_coins():
    transform = dataclasses.replace(
        TRANSFORM, jitter_probability=0, grey_probability=1, flip=False, crop=False
    )
    _, beta = transform.sample(jax.random.key(7), 40)
    assert not beta.jitter.any()
    assert beta.grey.all()
    assert not beta.flip.any()


def test_transforms_are_values():
    twin = ImageTransform(SIZE, np.array(MEAN), list(STD))
    assert twin == TRANSFORM
    assert hash(twin) == hash(TRANSFORM)


X, ALPHA = pictures(2), np.ones((2, 4))
BETA = ImageBeta(None, *[coins(2, True)] * 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TRANSFORM.apply(X[0], ALPHA, BETA), r"shape \(10, 12, 3\)"),
        (lambda: TRANSFORM.apply(X[..., :1], ALPHA, BETA), "channels last"),
        (lambda: TRANSFORM.apply(X.astype(np.int32), ALPHA, BETA), "int32.*255"),
        (lambda: TRANSFORM.apply(X, ALPHA[:, :3], BETA), r"\(2, 3\), not \(2, 4\)"),
        (lambda: TRANSFORM.untransformed(X[0]), r"shape \(10, 12, 3\)"),
        (lambda: dataclasses.replace(TRANSFORM, variant="x"), "'x': use 'paper' or 'authors'"),
        (lambda: dataclasses.replace(TRANSFORM, size=0), "size is 0: give a positive"),
        (lambda: dataclasses.replace(TRANSFORM, whole_size=-1), "whole_size is -1: give"),
        (lambda: dataclasses.replace(TRANSFORM, size=(8, 8, 3)), r"size is \(8, 8, 3\)"),
        (
            lambda: dataclasses.replace(TRANSFORM, mean=(0.5,)),
            "one number of each for every channel",
        ),
        (lambda: dataclasses.replace(TRANSFORM, std=(0.2, 0, 0.2)), "every std positive"),
        (lambda: dataclasses.replace(TRANSFORM, strength=-0.1), "strength is -0.1: use 0"),
        (lambda: dataclasses.replace(TRANSFORM, grey_probability=1.5), "grey_probability is 1.5"),
        (lambda: dataclasses.replace(TRANSFORM, crop_scale=(0.5, 0.2)), "in this order"),
        (lambda: dataclasses.replace(TRANSFORM, crop_scale=(0, 1)), "above 0"),
    ],
)
def test_mistakes_are_named(no_shape_checks, call, message):
    with pytest.raises(ValueError, match=message):
        call()
