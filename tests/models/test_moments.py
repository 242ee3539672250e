"""Sums over pixels and mixtures of them: values, derivatives of any order, precision, platforms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.models.moments import Shifted, mix, moments, squares
from invclr_jax.models.norm import normalise
from tests.reference import relative_error


def arrays(shape=(2, 300, 32), dtype=jnp.float64, seed=0):
    """Two arrays of pixels, a shift and a weight for each."""
    rng = np.random.default_rng(seed)
    small = (shape[0], 1, shape[2])
    exact = jnp.promote_types(dtype, jnp.float32)
    pixels = [jnp.asarray(rng.normal(1, 2, shape), dtype) for _ in range(2)]
    return pixels, [jnp.asarray(rng.normal(size=small), exact) for _ in range(4)]


def mixed(pixels, small):
    """Both primitives after one another, each part with a shift and without."""
    (u, w), (s, v, t, o) = pixels, small
    y = mix([(Shifted(u, s), v), (Shifted(w), t)], o, u.shape, u.dtype)
    return [y, *moments(y, [Shifted(u, s), Shifted(w)], o.dtype)]


def plainly_mixed(pixels, small):
    (u, w), (s, v, t, o) = pixels, small
    y = (u - s) * v + w * t + o
    return [y, *(each.sum(1, keepdims=True) for each in (y, (u - s) * y, w * y))]


def derivatives(function, operands, direction):
    """Gradients of a loss, of its slope and of the slope's slope."""
    loss = lambda *a: sum(jnp.sin(out / 100).sum() for out in function(*a))  # noqa: E731
    slope = lambda *a: jax.jvp(loss, a, direction)[1]  # noqa: E731
    bend = lambda *a: jax.jvp(slope, a, direction)[1]  # noqa: E731
    return [function(*operands), *(jax.grad(f, (0, 1))(*operands) for f in (loss, slope, bend))]


def agree(found, expected, tolerance):
    for ours, theirs in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        assert relative_error(ours, theirs) < tolerance


def test_every_derivative(x64):
    operands, direction = arrays(), arrays(seed=1)
    found = derivatives(mixed, operands, direction)
    agree(found, derivatives(plainly_mixed, operands, direction), 1e-10)


@pytest.mark.parametrize("shape", [(2, 300, 32), (1, 1000, 80), (2, 7, 5)])
def test_float32_by_our_own_sums(shape):
    """The same in float32, where CPUs call the library, against float64."""
    operands, direction = (arrays(shape, jnp.float32, seed) for seed in (0, 1))
    found = jax.jit(functools.partial(derivatives, mixed))(operands, direction)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), (operands, direction))
        expected = derivatives(plainly_mixed, *wide)
    agree(found, expected, 1e-4)


def test_gradient_of_a_norm_in_bfloat16():
    """Only the ends are rounded: values and gradients are within bfloat16's own error."""
    rng = np.random.default_rng(0)
    x, weights = (rng.normal(1, 2, (1, 600, 32)) for _ in range(2))
    scale, bias = rng.uniform(0.5, 2, 32), rng.normal(size=32)

    def gradient(dtype):
        exact = jnp.promote_types(dtype, jnp.float32)
        channels = (jnp.asarray(each, exact) for each in (scale, bias))
        pixels = (jnp.asarray(jnp.asarray(each, jnp.bfloat16), dtype) for each in (x, weights))
        x_, weights_ = pixels

        def loss(x, scale, bias):
            y, *_ = normalise(x, scale, bias, None, 1, 1e-5, dtype)
            return (y.astype(exact) * weights_.astype(exact)).sum()

        return jax.jit(jax.grad(loss, (0, 1, 2)))(x_, *channels)

    found = gradient(jnp.bfloat16)
    assert [each.dtype for each in found] == [jnp.bfloat16, jnp.float32, jnp.float32]
    with jax.enable_x64(True):
        expected = gradient(jnp.float64)
    for ours, theirs, limit in zip(found, expected, (5e-3, 1e-5, 1e-5), strict=True):
        assert relative_error(np.asarray(ours, np.float64), theirs) < limit


@pytest.mark.parametrize("shifted", [False, True])
def test_pixels_of_less_precision_than_the_sums(x64, shifted):
    """float32 pixels, float64 sums: all arithmetic is float64, and nothing reads it as float32."""
    (u, w), (shift, *_) = arrays((2, 300, 32))
    u, w = u.astype(jnp.float32), w.astype(jnp.float32)
    part = Shifted(u, shift if shifted else None)
    found = jax.jit(lambda w: moments(w, [part], jnp.float64))(w)
    wide = [np.asarray(each, np.float64) for each in (u, w, shift)]
    distance = wide[0] - wide[2] if shifted else wide[0]
    agree(found, [x.sum(1, keepdims=True) for x in (wide[1], distance * wide[1])], 1e-12)


def test_squares_of_a_distant_shift():
    x = np.random.default_rng(0).normal(1000, 1, (2, 999, 16)).astype(np.float32)
    shift = x.mean(1, keepdims=True, dtype=np.float64).astype(np.float32)
    expected = ((x.astype(np.float64) - shift) ** 2).sum(1, keepdims=True)
    assert relative_error(squares(jnp.asarray(x), jnp.asarray(shift)), expected) < 1e-6


def test_sums_are_the_same_on_any_number_of_devices():
    """Devices share XLA's threads; chunks of pixels do not depend on them."""
    pixels, small = arrays((1, 1000, 16), jnp.float32)
    one = jax.jit(mixed)(pixels, small)
    stacked = jax.tree.map(lambda x: jnp.stack([x] * 8), (pixels, small))
    for ours, alone in zip(jax.pmap(mixed)(*stacked), one, strict=True):
        np.testing.assert_array_equal(ours, np.broadcast_to(alone, ours.shape))


def test_mapped(x64):
    """`vmap`, with operands that are mapped and others that are not."""
    (u, w), small = arrays((2, 30, 16))
    many = jnp.stack([u, w, u + w], axis=1)
    found = jax.vmap(lambda u: mixed((u, w), small), in_axes=1)(many)
    for i in range(3):
        agree([each[i] for each in found], plainly_mixed((many[:, i], w), small), 1e-12)


@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
def test_accelerators_get_plain_sums(platform):
    traced = jax.jit(mixed).trace(*arrays(dtype=jnp.bfloat16))
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    assert "stablehlo.reduce" in text
    assert "custom_call" not in text
