"""The C++ convolutions are the convolution, up to rounding, in every derivative."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.models import forms, library, primitives
from invclr_jax.models.conv import convolve
from invclr_jax.native import library as compiled
from tests.models.test_conv import derivatives, quick_jit
from tests.reference import relative_error

pytestmark = pytest.mark.skipif(
    library.library() is None, reason="invclr_jax/native is not compiled here"
)


def normal(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [jnp.asarray(rng.normal(size=shape), "float32") for shape in shapes]


def native(family, x, w, y, stride=1):
    """The convolution of x by w, and the gradients of ⟨convolution, y⟩ in x and in w."""
    call = functools.partial(library.call, family, stride=stride)
    return (
        call("convolve", x, w, y.shape),
        call("input_gradient", y, w, x.shape),
        call("kernel_gradient", x, y, w.shape),
    )


def definition(x, w, y, stride=1):
    """The same by XLA's convolution."""
    value, pull = jax.vjp(lambda x, w: convolve(x, w, stride, "xla"), x, w)
    return value, *pull(y)


def exactly(function, *operands):
    """The function's value in double precision."""
    with jax.enable_x64():
        return jax.jit(function)(*(jnp.asarray(x, "float64") for x in operands))


@pytest.fixture(params=compiled.LEVELS)
def level(request, monkeypatch):
    """Each library that this processor can use."""
    needed = compiled.LEVELS[request.param]
    if not (needed <= compiled.processor() and compiled._register(request.param)):
        pytest.skip(f"this processor has no {request.param}")
    monkeypatch.setattr(library, "library", lambda: request.param)
    jax.clear_caches()  # the library's name is part of compiled programs
    return request.param


@pytest.mark.parametrize("stride", [1, 2])
def test_derivatives_of_every_nesting(level, stride):
    x, w, dx, dw = normal((2, 7, 10, 16), (3, 3, 16, 48), (2, 7, 10, 16), (3, 3, 16, 48))
    w, dw = w / 12, dw / 12
    ours, plain = (
        functools.partial(convolve, stride=stride, method=method) for method in ("auto", "xla")
    )
    found = quick_jit(functools.partial(derivatives, ours))(x, w, dx, dw)
    expected = exactly(functools.partial(derivatives, plain), x, w, dx, dw)
    for name in expected:
        for ours, theirs in zip(*map(jax.tree.leaves, (found[name], expected[name])), strict=True):
            assert relative_error(ours, theirs) < 2e-5, name


WINOGRAD = [
    ((1, 1, 1), 16, 16),
    ((3, 4, 5), 32, 16),
    ((5, 2, 9), 48, 80),
    ((40, 12, 7), 64, 32),  # several blocks of tiles, the last one smaller
    ((9, 4, 4), 256, 160),
    ((120, 20, 20), 16, 16),  # several blocks for the gradient of the kernel
    ((0, 4, 4), 16, 16),
]
DIRECT = [
    # images, channels, features, size of the kernel, stride
    ((2, 7, 10), 16, 48, 3, 1),
    ((2, 7, 10), 3, 5, 3, 2),
    ((3, 9, 8), 17, 32, 1, 2),
    ((2, 12, 11), 3, 20, 7, 2),
    ((1, 1, 1), 3, 20, 3, 2),
    ((1, 5, 5), 6, 20, 5, 3),
    ((2, 6, 6), 30, 33, 1, 1),
    ((2, 6, 6), 60, 16, 1, 1),  # several parts of a kernel with few features
    ((1, 40, 33), 64, 8, 3, 2),  # several bands of one picture
    ((3, 5, 4), 70, 72, 7, 4),
    ((5, 2, 1), 5, 100, 3, 2),
    ((30, 9, 9), 96, 16, 3, 2),  # several blocks of pixels
    ((0, 6, 6), 30, 33, 3, 1),
]
ROUNDING = {"float32": 1e-5, "bfloat16": 0.03}
"""The largest errors, as shares of the largest number."""


def check(family, images, channels, features, size, stride, dtype):
    outputs = (images[0], *(forms.output_size(pixels, stride) for pixels in images[1:]))
    shapes = (*images, channels), (size, size, channels, features), (*outputs, features)
    operands = [array.astype(dtype) for array in normal(*shapes)]
    found = jax.jit(functools.partial(native, family, stride=stride))(*operands)
    expected = exactly(functools.partial(definition, stride=stride), *operands)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == dtype
        assert ours.shape == theirs.shape
        if ours.size and np.any(theirs):
            limit = ROUNDING[dtype] if family == "winograd" else ROUNDING[dtype] / 6
            assert relative_error(ours.astype("float32"), theirs) < limit


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize(("images", "channels", "features"), WINOGRAD)
def test_winograd_of_every_size_by_its_definition(level, images, channels, features, dtype):
    check("winograd", images, channels, features, 3, 1, dtype)


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize(("images", "channels", "features", "size", "stride"), DIRECT)
def test_direct_of_every_size_by_its_definition(
    level, images, channels, features, size, stride, dtype
):
    check("direct", images, channels, features, size, stride, dtype)


def rms(error):
    return np.square(np.float64(error)).mean() ** 0.5


@pytest.mark.parametrize(("channels", "times"), [(128, 5), (512, 10)])
def test_rounding_errors_are_a_few_times_those_of_the_sum(level, channels, times):
    x, w = normal((4, 8, 8, channels), (3, 3, channels, channels))
    truth = exactly(functools.partial(convolve, method="xla"), x, w)
    values = library.call("winograd", "convolve", x, w, x.shape), convolve(x, w, method="xla")
    ours, plain = (rms(np.float64(y) - np.asarray(truth)) for y in values)
    assert 0 < ours < times * plain


def test_bfloat16_is_rounded_as_the_products_say():
    """Directly, only the result is; Winograd's products round what they multiply too."""
    shape, kernel = (4, 8, 8, 128), (3, 3, 128, 128)
    x, w = (array.astype("bfloat16") for array in normal(shape, kernel))
    truth = np.asarray(exactly(functools.partial(convolve, method="xla"), x, w))
    least = rms(np.float64(jnp.asarray(truth, "bfloat16")) - truth)
    for family, times in (("direct", 1.01), ("winograd", 8)):
        found = np.float64(library.call(family, "convolve", x, w, shape))
        assert least <= rms(found - truth) < times * least


def test_without_bfloat16_arithmetic_float32_is_used_and_said_once(monkeypatch, caplog):
    if not compiled._register("avx2"):
        pytest.skip("this processor has no avx2")
    monkeypatch.setattr(library, "library", lambda: "avx2")
    library._say_once.cache_clear()
    x, w = (array.astype("bfloat16") for array in normal((2, 6, 6, 16), (3, 3, 16, 16)))
    for family in library.FAMILIES:
        found = library.call(family, "convolve", x, w, x.shape)
        truth = exactly(functools.partial(convolve, method="xla"), x, w)
        assert found.dtype == jnp.bfloat16
        assert relative_error(found.astype("float32"), truth) < 0.004
    assert [record.message for record in caplog.records] == [
        "no bfloat16 arithmetic on this CPU (avx2): convolving in float32"
    ]


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
    ("pixels", "kernel", "stride", "dtype", "used"),
    [
        (8, (3, 3, 16, 32), 1, "float32", "winograd"),
        (8, (3, 3, 16, 32), 1, "bfloat16", "winograd"),
        (8, (3, 3, 16, 32), 2, "float32", "direct"),
        (8, (3, 3, 16, 24), 1, "float32", "direct"),
        (8, (3, 3, 3, 16), 1, "float32", "direct"),
        (8, (5, 5, 16, 16), 1, "float32", "direct"),
        (2, (1, 1, 16, 16), 1, "float32", None),
        (8, (1, 1, 16, 16), 1, "bfloat16", "direct"),
        (2, (3, 3, 16, 16), 1, "float32", None),
        (2, (3, 3, 16, 16), 1, "bfloat16", "direct"),
        (8, (3, 3, 16, 16), 1, "float16", None),
    ],
)
def test_used_where_it_suits(pixels, kernel, stride, dtype, used):
    x, w = jnp.zeros((2, pixels, pixels, kernel[2]), dtype), jnp.zeros(kernel, dtype)

    def loss(x, w):
        return convolve(x, w, stride).astype("float32").sum()

    program = jax.jit(jax.value_and_grad(loss, (0, 1))).lower(x, w).as_text()
    for family in library.FAMILIES:
        for role in library.ROLES:
            assert (f"invclr_{family}_{role}" in program) == (family == used)


def test_a_pointwise_kernel_has_only_its_own_gradient_from_the_library():
    x, w = normal((2, 8, 8, 16), (1, 1, 16, 32))
    grad = jax.jit(jax.grad(lambda x, w: jnp.square(convolve(x, w, 2)).sum(), (0, 1)))
    program = grad.lower(x, w).as_text()
    used = [role for role in library.ROLES if f"invclr_direct_{role}" in program]
    assert used == ["kernel_gradient"]
    expected = exactly(
        jax.grad(lambda x, w: jnp.square(convolve(x, w, 2, "xla")).sum(), (0, 1)), x, w
    )
    for ours, theirs in zip(grad(x, w), expected, strict=True):
        assert relative_error(ours, theirs) < 1e-5


def test_without_a_library_xla_convolves(monkeypatch):
    monkeypatch.setattr(library, "library", lambda: None)
    x, w = normal((2, 8, 8, 16), (3, 3, 16, 16))
    assert forms.native(x, w, 1) is None
    program = jax.jit(lambda x, w: convolve(x, w)).lower(x, w).as_text()
    assert "stablehlo.convolution" in program


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
