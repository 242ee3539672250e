"""Every way to convolve agrees in value and in derivatives of any nesting, on every platform."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal

from invclr_jax.models.conv import convolve
from invclr_jax.models.primitives import multiply_tokens
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


@pytest.mark.parametrize(
    ("size", "stride", "pixels"),
    [(1, 1, (7, 8)), (1, 2, (7, 8)), (3, 1, (2, 2)), (3, 2, (3, 4)), (7, 2, (4, 4))],
)
def test_matrix_products_equal_the_convolution(x64, size, stride, pixels):
    found, expected = (
        quick_jit(functools.partial(derivatives, functools.partial(convolve, **options)))
        for options in (
            {"stride": stride, "method": "auto"},
            {"stride": stride, "method": "xla"},
        )
    )
    operands = arrays(size, pixels)
    found, expected = found(*operands), expected(*operands)
    for name in expected:
        for ours, theirs in zip(*map(jax.tree.leaves, (found[name], expected[name])), strict=True):
            assert relative_error(ours, theirs) < 1e-10, name


@pytest.mark.parametrize("method", ["xla", "auto"])
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


@pytest.mark.parametrize(
    ("size", "pixels", "stride", "product"),
    [(1, (7, 8), 1, True), (3, (2, 2), 1, True), (3, (4, 4), 2, True), (3, (7, 8), 1, False)],
)
def test_products_replace_what_is_slow_on_cpus(x64, size, pixels, stride, product):
    x, w, _, _ = arrays(size, pixels)
    grad = jax.jit(jax.grad(lambda x, w: convolve(x, w, stride).sum(), (0, 1)))
    program = grad.lower(x, w).as_text()
    assert ("dot_general" in program, "stablehlo.convolution" in program) == (product, not product)


@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
def test_a_program_traced_here_is_lowered_elsewhere(platform):
    """With XLA's convolutions only: no product in their stead, and no call of our library."""
    x, w = jnp.zeros((2, 8, 8, 16)), jnp.zeros((3, 3, 16, 16))

    def loss(x, w):
        return jnp.square(convolve(convolve(x, w), w[:1, :1])).sum()

    traced = jax.jit(jax.grad(loss, (0, 1))).trace(x, w)
    program = traced.lower(lowering_platforms=(platform,)).as_text()
    assert "stablehlo.convolution" in program
    assert "dot_general" not in program
    assert "custom_call" not in program


@pytest.mark.parametrize(("dtype", "limit"), [(jnp.float64, 1e-12), (jnp.float32, 1e-5)])
def test_tokens_times_a_matrix(x64, dtype, limit):
    """Every derivative, in float32 by our own kernels where there are any."""
    rng = np.random.default_rng(0)
    x, dx = (jnp.asarray(rng.normal(size=(2, 7, 16)), dtype) for _ in range(2))
    w, dw = (jnp.asarray(rng.normal(size=(16, 32)), dtype) for _ in range(2))
    found, expected = (
        quick_jit(functools.partial(derivatives, product))(x, w, dx, dw)
        for product in (multiply_tokens, jnp.matmul)
    )
    for name in expected:
        for ours, theirs in zip(*map(jax.tree.leaves, (found[name], expected[name])), strict=True):
            assert relative_error(ours, theirs) < limit, name


@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
def test_accelerators_multiply_tokens_as_matrices(platform):
    x, w = jnp.zeros((2, 7, 16)), jnp.zeros((16, 32))
    loss = jax.grad(lambda x, w: jnp.square(multiply_tokens(x, w, "high")).sum(), (0, 1))
    program = jax.jit(loss).trace(x, w).lower(lowering_platforms=(platform,)).as_text()
    assert program.count("dot_general") == 3
    assert program.count("precision = [HIGH, HIGH]") == 3
    assert "stablehlo.convolution" not in program
    assert "custom_call" not in program


def test_under_pmap(x64):
    x, w, dx, _ = arrays(1)
    grads = [
        jax.pmap(jax.grad(lambda w, x, m=method: jnp.sin(convolve(x, w, 1, m)).sum()), in_axes=0)(
            jnp.stack([w, w]), jnp.stack([x, dx])
        )
        for method in ("auto", "xla")
    ]
    assert relative_error(*grads) < 1e-10


def test_an_unknown_way_is_refused():
    x, w, _, _ = arrays(1)
    with pytest.raises(ValueError, match="conv 'matmul' is unknown: use one of auto, xla"):
        convolve(x, w, method="matmul")


def test_bfloat16():
    x, w, _, _ = (a.astype(jnp.bfloat16) for a in arrays(1))
    grads = [
        jax.grad(lambda w, m=method: jnp.sin(convolve(x, w, 1, m)).sum())(w)
        for method in ("auto", "xla")
    ]
    assert grads[0].dtype == jnp.bfloat16
    assert relative_error(*grads) < 2e-2
