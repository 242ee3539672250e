"""Colour distortion against golden numbers, finite differences and its own promises."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from invclr_jax.transforms import colour
from tests.reference import relative_error

VARIANTS = ("paper", "authors")
FACTORED = ("brightness", "contrast", "saturation")
HUE_ERROR = {"paper": 9.4e-4, "authors": 1.4e-3}


def limit(dtype):
    return 1e-10 if dtype == np.float64 else 1e-5


def mapped(function):
    """`function(images, parameter)` applied to one image at a time under `vmap`."""
    return jax.vmap(lambda image, parameter: function(image[None], parameter[None])[0])


def each_way(function):
    return [function, jax.jit(function), jax.jit(mapped(function))]


@pytest.mark.parametrize("column", range(3), ids=FACTORED)
def test_single_operation_matches_golden(golden, precision, column):
    data, name = golden("colour"), FACTORED[column]
    images, factor = (a.astype(precision) for a in (data["images"], data["alpha"][:, column]))
    for function in each_way(getattr(colour, f"adjust_{name}")):
        out = function(images, factor)
        assert out.dtype == precision
        assert relative_error(out, data[name]) < limit(precision)


@pytest.mark.parametrize("variant", VARIANTS)
def test_hue_matches_golden(golden, precision, variant):
    data = golden("colour")
    images, turns = (a.astype(precision) for a in (data["images"], data["alpha"][:, 3]))
    for function in each_way(lambda x, t: colour.adjust_hue(x, t, variant=variant)):
        assert relative_error(function(images, turns), data[f"hue_{variant}"]) < limit(precision)


def test_greyscale_matches_golden(golden, precision):
    data = golden("colour")
    grey = colour.greyscale(data["images"].astype(precision))
    assert relative_error(grey, data["greyscale"]) < limit(precision)


@pytest.mark.parametrize("variant", VARIANTS)
def test_hue_matrices_match_golden(golden, x64, variant):
    primaries = np.eye(3)[:, None, None]
    columns = colour.adjust_hue(primaries, np.zeros(3), variant=variant)[:, 0, 0]
    expected = golden("colour")[f"hue_matrix_at_zero_{variant}"].T
    if variant == "paper":
        expected = np.clip(expected, 0, 1)
    np.testing.assert_allclose(columns, expected, atol=1e-15)


@pytest.mark.parametrize("variant", VARIANTS)
def test_jitter_matches_golden(golden, precision, variant):
    data = golden("colour")
    images, alpha = (data[name].astype(precision) for name in ("images", "alpha"))
    for function in each_way(lambda x, a: colour.colour_jitter(x, a, variant=variant)):
        out = function(images, alpha)
        assert out.dtype == precision
        assert relative_error(out, data[f"jitter_{variant}"]) < limit(precision)


@pytest.mark.parametrize("variant", VARIANTS)
def test_jitter_gradients_match_golden(golden, precision, variant):
    data = golden("colour")
    images, alpha, weights = (data[k].astype(precision) for k in ("images", "alpha", "weights"))

    def weighted_sum(images, alpha):
        return (weights * colour.colour_jitter(images, alpha, variant=variant)).sum()

    d_image, d_alpha = jax.jit(jax.grad(weighted_sum, argnums=(0, 1)))(images, alpha)
    # Twice the limit: unoptimised, as in these tests, XLA adds up the pixels one by one.
    assert relative_error(d_alpha, data[f"d_alpha_{variant}"]) < 2 * limit(precision)
    tie_free = data[f"tie_free_{variant}"]
    expected = data[f"d_image_{variant}"]
    assert relative_error(d_image[tie_free], expected[tie_free]) < limit(precision)


@pytest.mark.parametrize("variant", VARIANTS)
def test_derivatives_in_alpha_match_finite_differences(x64, variant):
    # Mid-range colours and a mild alpha keep every pixel off the kinks of clipping.
    rng = np.random.default_rng(0)
    images = rng.uniform(0.35, 0.6, (1, 5, 7, 3))
    weights = rng.normal(size=images.shape)
    alpha = jnp.array([1.1, 0.9, 1.2, 0.03])

    @jax.jit
    def value(alpha):
        jittered = colour.colour_jitter(images, alpha[None], variant=variant)
        return (weights * jnp.sin(5 * jittered)).sum()

    gradient, hessian = jax.jit(jax.grad(value)), jax.jit(jax.hessian(value))
    steps = 1e-5 * jnp.eye(4)
    first = [(value(alpha + step) - value(alpha - step)) / 2e-5 for step in steps]
    second = [(gradient(alpha + step) - gradient(alpha - step)) / 2e-5 for step in steps]
    assert relative_error(gradient(alpha), np.stack(first)) < 1e-8
    assert relative_error(hessian(alpha), np.stack(second)) < 1e-8
    assert np.abs(hessian(alpha)).min() > 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_flat_images_have_finite_derivatives(variant):
    levels, factors = jnp.array([0, 0.5, 1]), jnp.array([0, 0.6, 1, 1.4])
    images = jnp.broadcast_to(levels[:, None, None, None], (3, 2, 2, 3))
    alphas = jnp.stack([factors, factors[::-1], factors, (factors - 1) / 4], axis=1)

    def derivatives(image, alpha):
        def value(image, alpha):
            return jnp.sin(colour.colour_jitter(image[None], alpha[None], variant=variant)).sum()

        first = jax.grad(value, argnums=(0, 1))
        return value(image, alpha), jax.jvp(first, [image, alpha], [image, alpha])

    pairs = jnp.repeat(images, 4, 0), jnp.tile(alphas, (3, 1))
    for leaf in jax.tree.leaves(jax.jit(jax.vmap(derivatives))(*pairs)):
        assert np.isfinite(leaf).all()


def test_bfloat16_stays_bfloat16(golden):
    data = golden("colour")
    images, alpha = (jnp.asarray(data[k], jnp.bfloat16) for k in ("images", "alpha"))
    out, slope = jax.jit(lambda a: jax.jvp(lambda a: colour.colour_jitter(images, a), [a], [a]))(
        alpha
    )
    assert out.dtype == slope.dtype == jnp.bfloat16
    assert np.abs(np.asarray(out, np.float64) - data["jitter_paper"]).max() < 0.03
    assert np.isfinite(np.asarray(slope, np.float32)).all()


def test_an_image_depends_on_its_own_alpha_only(golden):
    data = golden("colour")
    images, alpha = (data[k].astype(np.float32) for k in ("images", "alpha"))
    other = np.concatenate([alpha[:1], alpha[1:][::-1]])
    before, after = (colour.colour_jitter(images, a) for a in (alpha, other))
    np.testing.assert_array_equal(before[0], after[0])
    assert np.abs(before[1:] - after[1:]).max() > 0.01


pictures = arrays(np.float32, (2, 3, 5, 3), elements=st.floats(0, 1, width=32))
property_test = settings(deadline=None, max_examples=25)


@jax.jit
def every_operation(images, alpha):
    single = [getattr(colour, f"adjust_{k}")(images, alpha[:, i]) for i, k in enumerate(FACTORED)]
    hue = {v: colour.adjust_hue(images, alpha[:, 3], variant=v) for v in VARIANTS}
    jitter = {v: colour.colour_jitter(images, alpha, variant=v) for v in VARIANTS}
    return single, hue, jitter


@property_test
@given(pictures, st.integers(0, 2**31 - 1))
def test_results_stay_in_range(images, seed):
    rng = np.random.default_rng(seed)
    alpha = rng.uniform([0, 0, 0, -1], [3, 3, 3, 1], (len(images), 4)).astype(np.float32)
    single, hue, jitter = every_operation(images, alpha)
    for result in (*single, hue["paper"], jitter["paper"]):
        assert result.shape == images.shape
        assert result.min() >= 0
        assert result.max() <= 1


@property_test
@given(pictures)
def test_neutral_parameters_change_nothing(images):
    neutral = np.array([[1, 1, 1, 0]] * len(images), np.float32)
    single, hue, jitter = every_operation(images, neutral)
    np.testing.assert_allclose(single, np.stack([images] * 3), atol=1e-6)
    for variant in VARIANTS:
        # A pixel is a sum of three channels, each off by at most the matrix's error.
        np.testing.assert_allclose(hue[variant], images, atol=3 * HUE_ERROR[variant])
        np.testing.assert_allclose(jitter[variant], images, atol=3 * HUE_ERROR[variant])


@property_test
@given(pictures)
def test_zero_factors_remove_what_they_scale(images):
    (dark, flat, grey), _, _ = every_operation(images, np.zeros((len(images), 4), np.float32))
    luma = images @ np.array([0.299, 0.587, 0.114], np.float32)
    assert not dark.any()
    np.testing.assert_allclose(grey, np.stack([luma] * 3, -1), atol=1e-6)
    mean = luma.mean((1, 2))[:, None, None, None]
    np.testing.assert_allclose(flat, np.broadcast_to(mean, images.shape), atol=1e-6)


@property_test
@given(st.floats(0, 1, width=32), st.floats(-1, 1, width=32))
def test_grey_has_no_hue(level, turns):
    images = np.full((2, 3, 5, 3), level, np.float32)
    alpha = np.full((2, 4), turns, np.float32)
    np.testing.assert_allclose(every_operation(images, alpha)[1]["paper"], images, atol=1e-6)


IMAGES, FACTOR, ALPHA = np.zeros((2, 4, 4, 3), np.float32), np.ones(2), np.ones((2, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: colour.greyscale(IMAGES[0]), r"shape \(4, 4, 3\).*images\[None\]"),
        (lambda: colour.greyscale(IMAGES[..., :1]), "1 channels: colour operations need three"),
        (lambda: colour.adjust_contrast(IMAGES.astype(np.uint8), FACTOR), "uint8.*by 255"),
        (lambda: colour.colour_jitter(IMAGES.astype(np.int32), ALPHA), "int32.*by 255"),
        (lambda: colour.adjust_brightness(IMAGES, FACTOR[:1]), r"factor .*\(1,\), not \(2,\)"),
        (lambda: colour.adjust_hue(IMAGES, ALPHA), r"turns .*\(2, 4\), not \(2,\)"),
        (lambda: colour.colour_jitter(IMAGES, ALPHA[:, :3]), r"alpha .*\(2, 3\), not \(2, 4\)"),
        (lambda: colour.colour_jitter(IMAGES, FACTOR), r"alpha .*\(2,\), not \(2, 4\)"),
        (lambda: colour.colour_jitter(IMAGES, ALPHA, variant="torch"), "'torch': use 'paper' or"),
        (lambda: colour.adjust_hue(IMAGES, FACTOR, variant=""), "'': use 'paper' or 'authors'"),
    ],
)
def test_mistakes_are_named(no_shape_checks, call, message):
    with pytest.raises(ValueError, match=message):
        call()
