"""The Spirograph renderer against golden numbers, the formula over the full grid, and calculus."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invclr_jax.transforms import hypotrochoid, spirograph
from invclr_jax.transforms.spirograph import FACTORS, RANGES, SpirographTransform, render
from tests.reference import relative_error

FILES = {"row": "spirograph", "image": "spirograph_paper"}
LOW, HIGH = np.array(list(RANGES.values())).T

both_rules = pytest.mark.parametrize("normalise", FILES)


def draw_params(n, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).uniform(LOW, HIGH, (n, len(FACTORS))).astype(dtype)


def full_grid(params, size, normalise, num_points):
    """The paper's formula, one exponential for each point and pixel, in NumPy."""
    t = np.linspace(0, 2 * np.pi, num_points)
    centres = np.linspace(-6, 6, size)
    images = []
    for m, b, h, sigma, *colours in np.asarray(params, np.float64):
        x = (m - h) * np.cos(t) + h * np.cos((m - h) * t / b)
        y = (m - h) * np.sin(t) - h * np.sin((m - h) * t / b)
        squares = (centres[:, None, None] - x) ** 2 + (centres[None, :, None] - y) ** 2
        intensity = np.exp(-squares / sigma).mean(-1)
        intensity /= intensity.max(None if normalise == "image" else 1, keepdims=True) + 1e-8
        mix = intensity[..., None]
        images.append(mix * np.array(colours[:3]) + (1 - mix) * np.array(colours[3:]))
    return np.stack(images)


def columns(data, names):
    return [list(data["columns"]).index(name) for name in data[names]]


def each_way(function):
    one_by_one = jax.vmap(lambda row: function(row[None])[0])
    return [function, jax.jit(function), jax.jit(one_by_one)]


# Golden numbers --------------------------------------------------------------------------------


@both_rules
def test_columns_are_those_of_the_golden_files(golden, normalise):
    data = golden(FILES[normalise])
    assert tuple(data["columns"]) == FACTORS
    assert tuple(data["alpha_columns"]) == SpirographTransform().nuisance
    assert tuple(data["x_columns"]) == SpirographTransform().interest
    np.testing.assert_array_equal(data["lower"], LOW)
    np.testing.assert_array_equal(data["upper"], HIGH)


@both_rules
@pytest.mark.parametrize("suffix", ["", "_large"])
def test_images_match_golden(golden, precision, normalise, suffix):
    data = golden(FILES[normalise])
    params, images = data[f"params{suffix}"].astype(precision), data[f"images{suffix}"]
    for function in each_way(functools.partial(render, size=images.shape[1], normalise=normalise)):
        drawn = function(params)
        assert drawn.dtype == precision
        assert relative_error(drawn, images) < (1e-10 if precision == np.float64 else 1e-4)


@both_rules
@pytest.mark.parametrize("suffix", ["", "_large"])
def test_gradients_match_golden(golden, precision, normalise, suffix):
    data = golden(FILES[normalise])
    params, weights = (data[f"{k}{suffix}"].astype(precision) for k in ("params", "weights"))

    def weighted_sum(params):
        return (weights * render(params, size=weights.shape[1], normalise=normalise)).sum()

    gradient = jax.jit(jax.grad(weighted_sum))(params)
    limit = 1e-10 if precision == np.float64 else 1e-3
    if suffix:
        assert relative_error(gradient, data["d_params_large"]) < limit
    else:
        assert relative_error(gradient[:, columns(data, "alpha_columns")], data["d_alpha"]) < limit
        assert relative_error(gradient[:, columns(data, "x_columns")], data["d_x"]) < limit


@both_rules
def test_figure_of_the_paper(golden, precision, normalise):
    data = golden(FILES[normalise])
    drawn = render(data["figure_params"][None].astype(precision), normalise=normalise)[0]
    limit = 1e-10 if precision == np.float64 else 1e-4
    assert relative_error(drawn, data["figure_image"]) < limit


# The formula -----------------------------------------------------------------------------------


@both_rules
@pytest.mark.parametrize(("size", "num_points"), [(2, 2), (7, 40), (20, 65)])
def test_other_sizes_match_the_full_grid(x64, normalise, size, num_points):
    params = draw_params(5, dtype=np.float64)
    drawn = render(params, size=size, normalise=normalise, num_points=num_points)
    expected = full_grid(params, size, normalise, num_points)
    assert relative_error(drawn, expected) < 1e-12


def test_float32_is_as_good_as_its_parameters():
    # The winding angle reaches 280 radians, and rounding it in float32 would double this error.
    params = draw_params(512)
    drawn = render(params, size=12)
    error = np.abs(drawn - full_grid(params, 12, "image", 40)).max((1, 2, 3))
    assert np.quantile(error, 0.99) < 6e-6


def test_large_batches_are_drawn_in_chunks(x64):
    params = draw_params(2 * hypotrochoid.CHUNK + 3, dtype=np.float64)
    draw = functools.partial(render, size=3, num_points=5)
    one_by_one = jax.vmap(lambda row: draw(row[None])[0])
    slopes = draw_params(len(params), seed=1, dtype=np.float64)

    def derivatives(function):
        def value(params):
            images = function(params)
            return (images**2).sum(), images

        return jax.jit(lambda p: jax.jvp(jax.grad(value, has_aux=True), [p], [slopes]))(params)

    whole, each = derivatives(draw), derivatives(one_by_one)
    for actual, expected in zip(jax.tree.leaves(whole), jax.tree.leaves(each), strict=True):
        assert relative_error(actual, expected) < 1e-10
        assert np.abs(expected).max() > 0.01


def test_memory_stays_small_at_4096_pictures():
    # The formula over the full grid holds 164 KB a picture for each of its steps.
    params = jax.ShapeDtypeStruct((4096, 10), jnp.float32)
    cotangent = jax.ShapeDtypeStruct((4096, 32, 32, 3), jnp.float32)

    def gradient(params, cotangent):
        images, pull = jax.vjp(render, params)
        return images, pull(cotangent)

    def working_bytes(function, *arguments):
        return jax.jit(function).lower(*arguments).compile().memory_analysis().temp_size_in_bytes

    assert working_bytes(render, params) < 4096 * 2_000
    assert working_bytes(gradient, params, cotangent) < 4096 * 10_000


@both_rules
def test_derivatives_in_alpha_match_finite_differences(golden, x64, normalise):
    data = golden(FILES[normalise])  # its rows have no ties for the maximum
    params = jnp.asarray(data["params"][:2])
    weights = jnp.asarray(data["weights"][:2])
    x, alpha = params[:, columns(data, "x_columns")], params[:, columns(data, "alpha_columns")]
    transform = SpirographTransform(size=weights.shape[1], normalise=normalise)

    @jax.jit
    def value(alpha):
        return (weights * jnp.sin(3 * transform.apply(x, alpha, None))).sum()

    gradient, hessian = jax.jit(jax.grad(value)), jax.jit(jax.hessian(value))
    steps = 1e-5 * jnp.eye(alpha.size).reshape(-1, *alpha.shape)
    first = [(value(alpha + s) - value(alpha - s)) / 2e-5 for s in steps]
    second = [(gradient(alpha + s) - gradient(alpha - s)) / 2e-5 for s in steps]
    assert relative_error(gradient(alpha).ravel(), np.stack(first)) < 1e-6
    assert relative_error(hessian(alpha).reshape(-1, *alpha.shape), np.stack(second)) < 1e-6
    assert np.abs(gradient(alpha)).min() > 0


@both_rules
def test_pixels_share_the_derivative_of_a_tied_maximum(x64, normalise):
    # With h = m every point is at (h, 0), between the two middle columns of an even grid. As m
    # moves one of them becomes the brighter, so that the picture has two one-sided derivatives.
    params = jnp.array([[1.7, 0.7, 1.7, 4.0, 0.9, 0.5, 0.6, 0.1, 0.2, 0.3]])
    image = render(params, size=4, normalise=normalise)
    np.testing.assert_array_equal(image[:, :, 1], image[:, :, 2])

    @jax.jit
    def value(m):
        return (render(params.at[0, 0].set(m), size=4, normalise=normalise)[:, :3] ** 2).sum()

    left, right = (value(1.7) - value(1.7 - 1e-8)) / 1e-8, (value(1.7 + 1e-8) - value(1.7)) / 1e-8
    assert left > 10
    assert right < -10
    assert float(jax.grad(value)(1.7)) == pytest.approx(float(left + right) / 2, abs=1e-5)


@both_rules
@pytest.mark.parametrize("size", [2, 8])
def test_extreme_parameters_give_finite_values_and_derivatives(normalise, size):
    corners = itertools.product([0, 2, 5], [0.1, 1.1], [0, 0.5, 2.5, 5], [0.001, 0.25, 1], [0, 1])
    params = np.array([[m, b, h, s, *3 * [c], *3 * [1 - c]] for m, b, h, s, c in corners])

    @jax.jit
    def derivatives(params):
        def value(params):
            return jnp.sin(render(params, size=size, normalise=normalise)).sum()

        return value(params), jax.jvp(jax.grad(value), [params], [jnp.ones_like(params)])

    for leaf in jax.tree.leaves(derivatives(jnp.asarray(params, jnp.float32))):
        assert np.isfinite(leaf).all()


# Properties ------------------------------------------------------------------------------------

property_test = settings(deadline=None, max_examples=25)
rows = st.integers(0, 2**31 - 1).map(lambda seed: draw_params(3, seed))
SIZE = 20


@property_test
@given(rows)
def test_pixels_lie_between_background_and_foreground(params):
    foreground, background = params[:, None, None, 4:7], params[:, None, None, 7:]
    for normalise in FILES:
        images = np.asarray(render(params, size=SIZE, normalise=normalise))
        assert (images >= np.minimum(foreground, background) - 1e-6).all()
        assert (images <= np.maximum(foreground, background) + 1e-6).all()


@property_test
@given(rows)
def test_brightest_pixel_has_the_foreground_colour(params):
    params[:, 4:7], params[:, 7:] = 1, 0  # so that pixels are intensities
    np.testing.assert_allclose(render(params, size=SIZE).max((1, 2)), 1, atol=1e-4)
    by_row = render(params, size=SIZE, normalise="row").max(2)
    assert by_row.max() <= 1 + 1e-6
    np.testing.assert_allclose(by_row.max(1), 1, atol=1e-4)


@property_test
@given(rows)
def test_exchanged_colours_draw_the_negative(params):
    negative = params[:, [0, 1, 2, 3, 7, 8, 9, 4, 5, 6]]
    total = params[:, None, None, 4:7] + params[:, None, None, 7:]
    both = render(params, size=SIZE) + render(negative, size=SIZE)
    np.testing.assert_allclose(both, np.broadcast_to(total, both.shape), atol=1e-6)


@property_test
@given(rows, st.integers(2, 9))
def test_closed_curves_are_symmetric_along_y(params, ratio):
    params[:, 1] = (params[:, 0] - params[:, 2]) / ratio  # an integer number of turns
    params = params[params[:, 1] > 0.05]
    images = np.asarray(render(params, size=SIZE, normalise="row"))
    np.testing.assert_allclose(images, images[:, :, ::-1], atol=2e-3)


def test_x_runs_along_axis_1():
    far_right = np.array([[5, 0.1, 5, 0.25, 1, 1, 1, 0, 0, 0]], np.float32)  # a dot at (5, 0)
    u, v = np.unravel_index(np.argmax(render(far_right, size=13)[0, ..., 0]), (13, 13))
    assert (u, v) == (11, 6)


def test_half_precision_is_drawn_in_float32():
    params = jnp.asarray(draw_params(2), jnp.bfloat16)
    np.testing.assert_array_equal(
        render(params, size=SIZE), render(params.astype(jnp.float32), size=SIZE)
    )


# Bad input -------------------------------------------------------------------------------------


@pytest.fixture
def nothing_drawn(monkeypatch, no_shape_checks):
    """Errors must come before anything is compiled."""
    monkeypatch.setattr(spirograph.hypotrochoid, "draw", lambda *_, **__: pytest.fail("drawn"))


@pytest.mark.parametrize(
    ("params", "options", "message"),
    [
        (np.ones(10), {}, r"params has shape \(10,\), not \[n, 10\].*columns \(m, b, h"),
        (np.ones((2, 9)), {}, r"params has shape \(2, 9\), not \[n, 10\]"),
        (np.ones((1, 2, 10)), {}, r"not \[n, 10\]"),
        (np.ones((2, 10)) - np.eye(10)[1], {}, "b = 0 .column 1.: b must be positive"),
        (np.ones((2, 10)) - 3 * np.eye(10)[3], {}, "sigma = -2 .column 3.: sigma must be positive"),
        (np.full((1, 10), np.nan), {}, "b = nan"),
        (np.ones((2, 10)), {"normalise": "rows"}, "unknown normalise 'rows': use 'image'"),
        (np.ones((2, 10)), {"size": 1}, "size is 1 .* at least 2"),
        (np.ones((2, 10)), {"num_points": 0}, "num_points 0: give at least 2"),
    ],
)
def test_bad_parameters_are_named(nothing_drawn, params, options, message):
    with pytest.raises(ValueError, match=message):
        render(jnp.asarray(params), **options)
