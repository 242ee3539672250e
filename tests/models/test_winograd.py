"""Winograd's products are the convolution, up to rounding, in every derivative."""

import functools
import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.models import forms, primitives, winograd
from invclr_jax.models.conv import convolve
from tests.models.test_conv import derivatives, quick_jit
from tests.reference import relative_error

pytestmark = pytest.mark.skipif(
    winograd.library() is None, reason="invclr_jax/native is not compiled here"
)


def normal(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [jnp.asarray(rng.normal(size=shape), "float32") for shape in shapes]


def by_winograd(x, w):
    """The convolution by Winograd's products however few outputs there are."""
    convolve_p = jax.custom_vjp(winograd.convolve)
    flipped = lambda w: w[::-1, ::-1].swapaxes(2, 3)  # noqa: E731
    convolve_p.defvjp(
        lambda x, w: (winograd.convolve(x, w), (x, w)),
        lambda kept, y: (
            winograd.convolve(y, flipped(kept[1])),
            winograd.kernel_gradient(kept[0], y),
        ),
    )
    return convolve_p(x, w)


def exactly(function, *operands):
    """The function's value in double precision."""
    with jax.enable_x64():
        return jax.jit(function)(*(jnp.asarray(x, "float64") for x in operands))


@pytest.fixture(params=winograd.LEVELS)
def level(request, monkeypatch):
    """Each library that this processor can use."""
    needed = winograd.LEVELS[request.param]
    if not (needed <= winograd._processor() and winograd._register(request.param)):
        pytest.skip(f"this processor has no {request.param}")
    monkeypatch.setattr(winograd, "library", lambda: request.param)
    jax.clear_caches()  # the library's name is part of compiled programs
    return request.param


def test_derivatives_of_every_nesting(level):
    x, w, dx, dw = normal((2, 7, 10, 16), (3, 3, 16, 48), (2, 7, 10, 16), (3, 3, 16, 48))
    w, dw = w / 12, dw / 12
    plain = functools.partial(convolve, method="xla")
    found = quick_jit(functools.partial(derivatives, convolve))(x, w, dx, dw)
    expected = exactly(functools.partial(derivatives, plain), x, w, dx, dw)
    for name in expected:
        for ours, theirs in zip(*map(jax.tree.leaves, (found[name], expected[name])), strict=True):
            assert relative_error(ours, theirs) < 2e-5, name


@pytest.mark.parametrize(
    ("images", "channels", "features"),
    [
        ((1, 1, 1), 16, 16),
        ((3, 4, 5), 32, 16),
        ((5, 2, 9), 48, 80),
        ((40, 12, 7), 64, 32),  # several blocks of tiles, the last one smaller
        ((9, 4, 4), 256, 160),
        ((0, 4, 4), 16, 16),
    ],
)
def test_every_size_by_its_definition(level, images, channels, features):
    x, w, y = normal((*images, channels), (3, 3, channels, features), (*images, features))

    def contractions(conv, x, w, y):
        value, pull = jax.vjp(conv, x, w)
        return value, *pull(y)

    found = jax.jit(functools.partial(contractions, by_winograd))(x, w, y)
    expected = exactly(
        functools.partial(contractions, functools.partial(convolve, method="xla")), x, w, y
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        if ours.size:
            assert relative_error(ours, theirs) < 1e-5


@pytest.mark.parametrize(("channels", "times"), [(128, 5), (512, 10)])
def test_rounding_errors_are_a_few_times_those_of_the_sum(level, channels, times):
    x, w = normal((4, 8, 8, channels), (3, 3, channels, channels))
    truth = exactly(functools.partial(convolve, method="xla"), x, w)
    values = winograd.convolve(x, w), convolve(x, w, method="xla")
    ours, plain = (np.square(np.float64(y) - np.asarray(truth)).mean() ** 0.5 for y in values)
    assert 0 < ours < times * plain


def test_devices_at_once():
    """More callers than threads: each must end by itself."""
    count = jax.device_count()
    x, w = normal((count, 4, 9, 9, 16), (3, 3, 16, 32))
    loss = lambda w, x: jnp.square(convolve(x, w)).sum()  # noqa: E731
    grads = jax.pmap(jax.grad(loss), in_axes=(None, 0))
    for _ in range(20):
        found = grads(w, x)
    expected = jax.vmap(jax.grad(loss), (None, 0))(w, x)
    assert relative_error(found, expected) < 1e-5


def test_images_are_folded_and_kernels_are_looped_over():
    x, w = normal((5, 2, 6, 6, 16), (3, 3, 16, 16))
    over_images = str(jax.make_jaxpr(jax.vmap(convolve, (0, None)))(x, w))
    over_kernels = str(jax.make_jaxpr(jax.vmap(convolve, (None, 0)))(x[0], w[None]))
    assert ("scan" in over_images, "scan" in over_kernels) == (False, True)


@pytest.mark.parametrize(
    ("kernel", "stride", "dtype", "used"),
    [
        ((3, 3, 16, 32), 1, "float32", True),
        ((3, 3, 16, 32), 2, "float32", False),
        ((3, 3, 16, 24), 1, "float32", False),
        ((3, 3, 3, 16), 1, "float32", False),
        ((5, 5, 16, 16), 1, "float32", False),
        ((3, 3, 16, 16), 1, "bfloat16", False),
    ],
)
def test_used_where_it_suits(kernel, stride, dtype, used):
    x, w = jnp.zeros((2, 8, 8, kernel[2]), dtype), jnp.zeros(kernel, dtype)
    program = jax.jit(functools.partial(convolve, stride=stride)).lower(x, w).as_text()
    assert ("invclr_convolve" in program) == used


def test_without_a_library_xla_convolves(monkeypatch):
    monkeypatch.setattr(winograd, "library", lambda: None)
    x, w = normal((2, 8, 8, 16), (3, 3, 16, 16))
    assert not forms.is_winograd(x, w, 1)
    program = jax.jit(lambda x, w: convolve(x, w)).lower(x, w).as_text()
    assert "stablehlo.convolution" in program


def test_a_library_must_suit_the_processor(monkeypatch):
    monkeypatch.setattr(winograd, "_processor", lambda: {"sse2"})
    assert winograd.library.__wrapped__() is None


@pytest.mark.parametrize(
    ("call", "shapes"),
    [
        (primitives.convolve, [(2, 8, 8, 32), (3, 3, 16, 16)]),
        (primitives.convolve, [(2, 8, 8, 16), (3, 5, 16, 16)]),
        (primitives.convolve, [(8, 8, 16), (3, 3, 16, 16)]),
        (functools.partial(primitives.kernel_gradient, size=3), [(2, 8, 8, 16), (2, 4, 4, 16)]),
        (
            functools.partial(primitives.input_gradient, pixels=(9, 8)),
            [(2, 8, 8, 16), (3, 3, 16, 16)],
        ),
    ],
)
def test_what_does_not_fit_is_refused(no_shape_checks, call, shapes):
    """In C++ it would be read beyond its end."""
    with pytest.raises(ValueError, match="do not suit"):
        call(*normal(*shapes), stride=1)


def test_a_library_that_cannot_be_loaded_is_passed_over(monkeypatch, tmp_path):
    path = tmp_path / "broken.so"
    path.write_text("no library")
    spec = importlib.util.spec_from_file_location("broken", path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    assert not winograd._register.__wrapped__("avx2")
