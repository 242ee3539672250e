"""The Spirograph transform: which factors it varies, their distributions, and its errors."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.transforms import base
from invclr_jax.transforms.base import Transform
from invclr_jax.transforms.spirograph import RANGES, SpirographTransform, render

BACKGROUND = ("b_r", "b_g", "b_b")


def test_default_is_the_papers():
    transform = SpirographTransform()
    assert isinstance(transform, Transform)
    np.testing.assert_array_equal(transform.alpha.low, [0.5, 0.4, 0.4, 0, 0, 0])
    np.testing.assert_array_equal(transform.alpha.high, [2.5, 1, 1, 0.6, 0.6, 0.6])
    np.testing.assert_array_equal(transform.x.low, [2, 0.1, 0.25, 0.4])
    np.testing.assert_array_equal(transform.x.high, [5, 1.1, 1, 1])
    assert not base.takes_images(transform)
    assert base.alpha_names(transform) == ("h", "f_g", "f_b", "b_r", "b_g", "b_b")


def test_apply_puts_the_columns_in_place():
    transform = SpirographTransform(size=6, normalise="row", num_points=11)
    params = np.random.default_rng(0).uniform(*zip(*RANGES.values(), strict=True), (3, 10))
    params = params.astype(np.float32)
    expected = render(params, size=6, normalise="row", num_points=11)
    x, alpha = params[:, [0, 1, 3, 4]], params[:, [2, 5, 6, 7, 8, 9]]
    for apply in (transform.apply, jax.jit(transform.apply)):
        np.testing.assert_array_equal(apply(x, alpha, None), expected)
    rest = ["b_g", "b_r", "f_b", "f_g", "f_r", "sigma", "b", "m"]
    other = dataclasses.replace(transform, interest=["b_b", "h"], nuisance=rest)
    swapped = other.apply(params[:, [9, 2]], params[:, [8, 7, 6, 5, 4, 3, 1, 0]])
    np.testing.assert_array_equal(swapped, expected)


def test_apply_takes_the_wider_dtype(x64):
    transform = SpirographTransform(size=4)
    x, alpha = transform.x.mean[None], transform.alpha.mean[None]
    assert transform.apply(x.astype(np.float32), alpha.astype(np.float32)).dtype == np.float32
    assert transform.apply(x.astype(np.float32), alpha).dtype == np.float64


def test_sample_is_uniform_on_the_box():
    transform = SpirographTransform().widened(0.3, ["h"])
    alpha, beta = transform.sample(jax.random.key(0), 20_000)
    assert beta is None
    assert alpha.shape == (20_000, 6)
    alpha = np.asarray(alpha)
    assert (alpha >= transform.alpha.low.astype(np.float32)).all()
    assert (alpha <= transform.alpha.high.astype(np.float32)).all()
    error = np.sqrt(transform.alpha.variance / 20_000)
    assert (np.abs(alpha.mean(0) - transform.alpha.mean) < 4 * error).all()
    np.testing.assert_allclose(alpha.var(0), transform.alpha.variance, rtol=0.05)
    correlation = np.corrcoef(alpha.T) - np.eye(6)
    assert np.abs(correlation).max() < 4 / np.sqrt(20_000)


def ends(transform, name):
    column = transform.nuisance.index(name)
    return pytest.approx((transform.alpha.low[column], transform.alpha.high[column]))


@pytest.mark.parametrize("amount", [0.1, 0.3, 0.5])
def test_robustness_grid_of_h(amount):
    transform = SpirographTransform()
    assert ends(transform.shifted(amount, ["h"]), "h") == (0.5 + amount, 2.5 + amount)
    assert ends(transform.shifted(-amount, ["h"]), "h") == (0.5 - amount, 2.5 - amount)
    assert ends(transform.widened(amount, ["h"]), "h") == (0.5 - amount, 2.5 + amount)


def test_shifts_are_the_papers_grids():
    regime, shifted = base.shifts(SpirographTransform())
    assert regime == SpirographTransform()
    pens = [f"h_shift={s:+g}" for s in (-0.5, -0.3, -0.1, 0.1, 0.3, 0.5)]
    pens += [f"h_widen={s:g}" for s in (0.1, 0.3, 0.5)]
    background = [
        f"background_{how}={s:g}" for s in (0.1, 0.2, 0.3, 0.4) for how in ("shift", "widen")
    ]
    assert list(shifted) == pens + background
    assert ends(shifted["h_shift=-0.3"], "h") == (0.2, 2.2)
    assert ends(shifted["h_widen=0.5"], "h") == (0, 3)
    assert ends(shifted["background_shift=0.2"], "b_g") == (0.2, 0.8)
    assert ends(shifted["background_widen=0.4"], "b_b") == (0, 1)


@pytest.mark.parametrize("amount", [0.1, 0.2, 0.3, 0.4])
def test_robustness_grid_of_the_background(amount):
    transform = SpirographTransform()
    for name in BACKGROUND:
        assert ends(transform.shifted(amount, BACKGROUND), name) == (amount, 0.6 + amount)
        assert ends(transform.widened(amount, BACKGROUND), name) == (0, 0.6 + amount)
        unclipped = transform.widened(amount, BACKGROUND, clip=False)
        assert ends(unclipped, name) == (-amount, 0.6 + amount)


def test_a_move_changes_nothing_else():
    transform = SpirographTransform(size=20, ranges={"f_g": (0.5, 0.5)})
    moved = transform.shifted(0.1, "b_g").widened(1.0, ["h"])
    assert ends(moved, "h") == (0, 3.5)
    assert ends(moved, "b_g") == (0.1, 0.7)
    assert ends(moved, "f_g") == (0.5, 0.5)
    for name in ("f_b", "b_r", "b_b"):
        assert ends(moved, name) == RANGES[name]
    assert moved.x.low.tolist() == transform.x.low.tolist()
    assert dataclasses.replace(moved, ranges=transform.ranges) == transform


def test_transforms_are_compared_and_hashed_by_value():
    transform = SpirographTransform()
    assert transform == SpirographTransform(nuisance=list(transform.nuisance))
    assert hash(transform) == hash(SpirographTransform())
    assert transform != transform.shifted(0.1, ["h"])
    assert len({transform, transform.shifted(0.1, ["h"]), SpirographTransform()}) == 2


def test_there_is_no_untransformed_picture():
    with pytest.raises(ValueError, match=r"no untransformed version of x.*average.*one sample"):
        SpirographTransform().untransformed(np.ones((2, 4), np.float32))


NUISANCE = SpirographTransform().nuisance


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nuisance": (*NUISANCE, "m")}, "factor 'm' is in both groups"),
        ({"nuisance": NUISANCE[1:]}, "factor 'h' is in neither group"),
        ({"nuisance": (*NUISANCE, "hue")}, r"unknown \['hue'\]: the factors are m, b, h, sigma"),
        ({"ranges": {"radius": (0, 1)}}, r"unknown \['radius'\]"),
        ({"ranges": {"sigma": (0, 1)}}, "range of sigma starts at 0: sigma must be positive"),
        ({"ranges": {"h": (2, 1)}}, r"range of h is \(2, 1\), which is empty"),
        ({"ranges": {"h": (1,)}}, r"range of h is \(1,\): give its two ends"),
        ({"ranges": {"m": (2, np.inf)}}, "finite"),
        ({"size": 0}, "size is 0"),
        ({"normalise": "column"}, "unknown normalise 'column'"),
    ],
)
def test_bad_options_are_named(no_shape_checks, options, message):
    with pytest.raises(ValueError, match=message):
        SpirographTransform(**options)


def test_bad_moves_are_named():
    transform = SpirographTransform()
    with pytest.raises(ValueError, match=r"unknown \['m'\]: the nuisances are h, f_g"):
        transform.shifted(0.1, ["m"])
    with pytest.raises(ValueError, match=r"range of b_r is \(2, 1\), which is empty.*by less"):
        transform.shifted(2, ["b_r"])
    with pytest.raises(ValueError, match=r"range of h is .*empty"):
        transform.widened(-2, ["h"])


@pytest.mark.parametrize(
    ("x", "alpha", "message"),
    [
        ((2, 5), (2, 6), r"x has shape \(2, 5\), not \[n, 4\].*columns \(m, b, sigma, f_r\)"),
        ((2, 4), (2, 4), r"alpha has shape \(2, 4\), not \[n, 6\].*columns \(h, f_g"),
        ((4,), (2, 6), r"x has shape \(4,\)"),
        ((3, 4), (2, 6), "x has 3 rows, alpha 2: give one alpha for each x"),
    ],
)
def test_bad_arrays_are_named(no_shape_checks, x, alpha, message):
    for apply in (SpirographTransform().apply, jax.jit(SpirographTransform().apply)):
        with pytest.raises(ValueError, match=message):
            apply(jnp.ones(x), jnp.ones(alpha), None)


def test_a_bad_sigma_is_named_by_apply():
    transform = SpirographTransform()
    x = np.array([[3, 0.5, 0, 1]], np.float32)
    with pytest.raises(ValueError, match="sigma = 0"):
        transform.apply(x, transform.alpha.mean[None].astype(np.float32))
