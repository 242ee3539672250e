"""Both convolutions agree in value and in derivatives of any nesting."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal

from invclr_jax.models import blocking, trilinear, winograd
from invclr_jax.models.conv import convolve
from tests.reference import relative_error

KERNELS = [(3, 1), (3, 2), (1, 1), (1, 2), (7, 2)]
quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def arrays(size, pixels=(7, 8), seed=0):
    """Images and a kernel, and a direction of each; neither square nor even."""
    rng = np.random.default_rng(seed)
    shapes = {"x": (2, *pixels, 3), "w": (size, size, 3, 4)}
    return [jnp.asarray(rng.normal(size=shapes[name])) for name in "xwxw"]


def derivatives(conv, x, w, dx, dw):
    """Values and derivatives up to third order, by every nesting that training uses."""
    loss = lambda x, w: jnp.sin(conv(x, w)).sum()  # noqa: E731
    grad = jax.grad(loss, (0, 1))
    slope = lambda x, w: jax.jvp(lambda x: jnp.sin(conv(x, w)), (x,), (dx,))[1]  # noqa: E731
    squared = lambda tree: sum(jnp.square(leaf).sum() for leaf in jax.tree.leaves(tree))  # noqa: E731
    penalty = jax.grad(lambda x, w: squared(slope(x, w)), (0, 1))
    return {
        "value": conv(x, w),
        "grad": grad(x, w),
        "grad of grad": jax.grad(lambda x, w: squared(grad(x, w)), (0, 1))(x, w),
        "grad of jvp": penalty(x, w),
        "jvp of grad": jax.jvp(grad, (x, w), (dx, dw))[1],
        "jvp of grad of jvp": jax.jvp(penalty, (x, w), (dx, dw))[1],
        "vmap of grad": jax.vmap(lambda x: grad(x[None], w))(x),
        "vmap over kernels": jax.vmap(lambda w: grad(x, w))(jnp.stack([w, dw])),
        "grad of vmap": jax.grad(lambda w: jax.vmap(lambda x: loss(x[None], w))(x).sum())(w),
    }


@pytest.mark.parametrize(("size", "stride"), KERNELS)
def test_matrix_products_equal_the_convolution(x64, size, stride):
    found, expected = (
        quick_jit(functools.partial(derivatives, functools.partial(convolve, **options)))
        for options in (
            {"stride": stride, "method": "matmul"},
            {"stride": stride, "method": "xla"},
        )
    )
    operands = arrays(size)
    found, expected = found(*operands), expected(*operands)
    for name in expected:
        for ours, theirs in zip(*map(jax.tree.leaves, (found[name], expected[name])), strict=True):
            assert relative_error(ours, theirs) < 1e-10, name


@pytest.mark.parametrize("method", ["xla", "matmul"])
@pytest.mark.parametrize("pixels", [(7, 8), (3, 4), (2, 2), (4, 1), (1, 1)])
@pytest.mark.parametrize(("size", "stride"), KERNELS)
def test_convolution_by_its_definition(x64, size, stride, pixels, method):
    x, w, _, _ = arrays(size, pixels)
    y = convolve(x, w, stride, method)
    full = [
        sum(
            scipy.signal.correlate(np.pad(x[n, ..., c], size // 2), w[..., c, f], mode="valid")
            for c in range(x.shape[-1])
        )[::stride, ::stride]
        for n in range(len(x))
        for f in range(w.shape[-1])
    ]
    expected = np.stack(full).reshape(len(x), w.shape[-1], *y.shape[1:3]).transpose(0, 2, 3, 1)
    assert relative_error(y, expected) < 1e-12


@pytest.mark.parametrize(("pixels", "part"), [((4, 6), 2**19), ((8, 2), 0)])
def test_winograd_equals_the_convolution(x64, monkeypatch, pixels, part):
    """All its contractions, nested, whole and image by image; no other test has the channels."""
    monkeypatch.setattr(trilinear, "WINOGRAD_CHANNELS", 1)
    monkeypatch.setattr(blocking, "CACHE", 0)
    monkeypatch.setattr(winograd, "PART", part)
    operands = arrays(3, pixels)
    text = quick_jit(functools.partial(convolve, method="matmul")).lower(*operands[:2]).as_text()
    assert "convolution(" not in text
    found, expected = (
        quick_jit(functools.partial(derivatives, functools.partial(convolve, method=method)))
        for method in ("matmul", "xla")
    )
    found, expected = found(*operands), expected(*operands)
    for name in expected:
        for ours, theirs in zip(*map(jax.tree.leaves, (found[name], expected[name])), strict=True):
            assert relative_error(ours, theirs) < 1e-10, name


def test_winograd_rounds_about_as_well_as_the_sum():
    """Against double precision, at the size where it is used."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(4, 8, 8, 128)).astype(np.float32) for _ in "xy")
    w = rng.normal(size=(3, 3, 128, 128)).astype(np.float32)

    def errors(method):
        value, pull = jax.vjp(lambda x, w: convolve(x, w, 1, method), x, w)
        with jax.enable_x64():
            exact = [jnp.asarray(a, "float64") for a in (x, w, y)]
            best, best_pull = jax.vjp(lambda x, w: convolve(x, w, 1, "xla"), *exact[:2])
            truth = (best, *best_pull(exact[2]))
        found = (value, *pull(y))
        return [relative_error(a, b) for a, b in zip(found, truth, strict=True)]

    for ours, plain in zip(errors("matmul"), errors("xla"), strict=True):
        assert ours < 3 * plain < 1e-5


@pytest.mark.parametrize(
    ("channels", "pixels", "dtype", "used"),
    [
        (128, (4, 4), "float32", True),
        (32, (4, 4), "float32", False),
        (128, (5, 4), "float32", False),
        (128, (4, 4), "bfloat16", False),
    ],
)
def test_winograd_is_used_where_it_wins(channels, pixels, dtype, used):
    x, w = jnp.zeros((2, *pixels, channels), dtype), jnp.zeros((3, 3, channels, channels), dtype)
    text = jax.jit(lambda x, w: convolve(x, w, 1, "matmul")).lower(x, w).as_text()
    assert ("convolution" not in text.replace("convolution_contract", "")) == used


def test_kernel_gradients_are_matrix_products():
    x, w, _, _ = arrays(3)
    loss = lambda w: convolve(x, w, 1, "matmul").sum()  # noqa: E731
    program = str(jax.make_jaxpr(jax.grad(loss))(w))
    text = jax.jit(jax.grad(loss)).lower(w).as_text()
    assert program.count("convolution_contract[") == 2
    assert "dot_general" in text


def test_under_pmap(x64):
    x, w, dx, _ = arrays(3)
    grads = [
        jax.pmap(jax.grad(lambda w, x, m=method: jnp.sin(convolve(x, w, 1, m)).sum()), in_axes=0)(
            jnp.stack([w, w]), jnp.stack([x, dx])
        )
        for method in ("matmul", "xla")
    ]
    assert relative_error(*grads) < 1e-10


def test_auto_suits_the_platform():
    x, w, _, _ = arrays(3)
    program = str(jax.make_jaxpr(convolve)(x, w))
    assert ("convolution_contract" in program) == (jax.default_backend() == "cpu")


def test_bfloat16():
    x, w, _, _ = (a.astype(jnp.bfloat16) for a in arrays(3))
    grads = [
        jax.grad(lambda w, m=method: jnp.sin(convolve(x, w, 1, m)).sum())(w)
        for method in ("matmul", "xla")
    ]
    assert grads[0].dtype == jnp.bfloat16
    assert relative_error(*grads) < 2e-2


@pytest.mark.parametrize(("cache", "length"), [(0, 1), (2 * 8 * 7 * 8 * 3, 2), (10**9, 6)])
def test_kernel_gradients_of_parts_add_up(x64, monkeypatch, cache, length):
    rng = np.random.default_rng(0)
    x, w = (jnp.asarray(rng.normal(size=shape)) for shape in ((6, 7, 8, 3), (3, 3, 3, 2)))
    monkeypatch.setattr(blocking, "CACHE", cache)
    found, expected = (
        jax.grad(lambda w: jnp.sin(convolve(x, w, 1, method)).sum())(w)  # noqa: B023
        for method in ("matmul", "xla")
    )
    assert blocking.images_at_a_time(len(x), x[0].nbytes) == length
    assert relative_error(found, expected) < 1e-12
