"""Interpolation against SciPy, in C++ against gathers in every derivative, on every platform."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from invclr_jax.native import library
from invclr_jax.transforms import interpolation
from invclr_jax.transforms.interpolation import interpolate
from tests.reference import relative_error

CALLS = ("interpolate", "image_gradient", "weight_gradients")
COMPILED = library.library()
SIZES = [
    # pictures, height, width, channels; height and width of the result
    ((3, 9, 12, 3), (9, 12)),
    ((2, 5, 4, 1), (3, 70)),
    ((2, 4, 6, 5), (1, 2)),
    ((2, 1, 5, 3), (4, 4)),
    ((2, 5, 1, 2), (4, 4)),
    ((2, 1, 1, 3), (2, 3)),
    ((1, 7, 7, 3), (8, 9)),
    ((0, 7, 7, 3), (8, 9)),
]


@pytest.fixture(params=[*library.LEVELS, None])
def level(request, monkeypatch):
    """Each library that this processor can use, and none: gathers."""
    needed = library.LEVELS.get(request.param, set())
    if request.param and not (needed <= library.processor() and library._register(request.param)):
        pytest.skip(f"this processor has no {request.param}")
    monkeypatch.setattr(library, "library", lambda: request.param)
    jax.clear_caches()  # the library's name is part of compiled programs
    yield request.param
    jax.clear_caches()


def arrays(shape=(3, 9, 12, 3), size=(9, 12), seed=0):
    """Pictures, rows and columns, some beyond the pictures, in float64."""
    rng = np.random.default_rng(seed)
    n, height, width, _ = shape
    rows, columns = (rng.uniform(-2, length + 1, (n, *size)) for length in (height, width))
    return [jnp.asarray(v) for v in (rng.normal(size=shape), rows, columns)]


def by_scipy(images, rows, columns):
    """The definition, picture by picture."""
    shape = (*rows.shape, images.shape[3])
    planes = [
        ndimage.map_coordinates(plane, [row, column], order=1, mode="nearest")
        for image, row, column in zip(images, rows, columns, strict=True)
        for plane in np.moveaxis(np.asarray(image), -1, 0)
    ]
    if not planes:
        return np.zeros(shape)
    return np.moveaxis(np.reshape(planes, (shape[0], shape[3], *shape[1:3])), 1, -1)


@pytest.mark.parametrize(("shape", "size"), SIZES)
def test_equal_to_scipys(level, precision, shape, size):
    operands = [v.astype(precision) for v in arrays(shape, size)]
    found = jax.jit(interpolate)(*operands)
    assert found.dtype == precision
    expected = by_scipy(*(np.asarray(v, float) for v in operands))
    np.testing.assert_allclose(found, expected, atol=1e-12 if precision == "float64" else 1e-5)


def test_pixels_are_found_exactly(level, precision):
    images = arrays()[0].astype(precision)
    rows, columns = np.broadcast_arrays(*np.mgrid[:9, :12].astype(precision)[:, None])
    pixels = jax.jit(interpolate)(images, *(np.repeat(v, 3, 0) for v in (rows, columns)))
    np.testing.assert_array_equal(pixels, images)


def derivatives(x, rows, columns):
    """Values and derivatives up to third order, by every nesting that training uses."""
    operands, every = (x, rows, columns), (0, 1, 2)
    directions = jax.tree.map(jnp.cos, operands)
    loss = lambda *operands: jnp.sin(interpolate(*operands)).sum()  # noqa: E731
    squared = lambda tree: sum(jnp.square(leaf).sum() for leaf in jax.tree.leaves(tree))  # noqa: E731
    grad = jax.grad(loss, every)
    slope = lambda *operands: jax.jvp(interpolate, operands, directions)[1]  # noqa: E731
    penalty = jax.grad(lambda *operands: squared(slope(*operands)), every)
    picture = lambda x, row: grad(x[None], row[None], columns[:1])  # noqa: E731
    return {
        "grad": grad(*operands),
        "jvp": slope(*operands),
        "grad of grad": jax.grad(lambda *operands: squared(grad(*operands)), every)(*operands),
        "grad of jvp": penalty(*operands),
        "jvp of grad": jax.jvp(grad, operands, directions)[1],
        "jvp of grad of jvp": jax.jvp(penalty, operands, directions)[1],
        "vmap of grad": jax.vmap(picture, (0, None))(x, rows[0]),
        "jacobian": jax.jacfwd(lambda row: interpolate(x, rows.at[0, 0].set(row), columns))(
            rows[0, 0]
        ),
    }


@pytest.mark.skipif(COMPILED is None, reason="invclr_jax/native is not compiled here")
@pytest.mark.parametrize(("shape", "size"), [SIZES[0], SIZES[2], SIZES[3]])
def test_derivatives_are_those_of_gathers(monkeypatch, precision, shape, size):
    with jax.enable_x64():
        operands = arrays(shape, size)
        monkeypatch.setattr(library, "library", lambda: None)
        jax.clear_caches()
        expected = jax.jit(derivatives)(*operands)
    monkeypatch.setattr(library, "library", lambda: COMPILED)
    jax.clear_caches()
    found = jax.jit(derivatives)(*(v.astype(precision) for v in operands))
    for name in expected:
        for ours, theirs in zip(*map(jax.tree.leaves, (found[name], expected[name])), strict=True):
            limit = 1e-11 if precision == "float64" else 1e-4
            if np.any(theirs):
                assert relative_error(ours, theirs) < limit, name
            else:
                assert not np.any(ours), name


def test_first_and_second_derivatives(level, x64):
    """In the positions by finite differences, inside and beyond the pictures."""
    images, rows, columns = arrays()
    value = lambda rows, columns: jnp.sin(interpolate(images, rows, columns))  # noqa: E731
    gradient = jax.jit(jax.grad(lambda *positions: value(*positions).sum(), (0, 1)))
    step = 1e-6
    for axis, by in enumerate(((step, 0), (0, step))):
        after, before = ((rows + sign * by[0], columns + sign * by[1]) for sign in (1, -1))
        first = (value(*after) - value(*before)).sum(-1) / (2 * step)
        assert relative_error(gradient(rows, columns)[axis], first) < 1e-6
        direction = tuple(jnp.full(rows.shape, v / step) for v in by)
        second = jax.jvp(gradient, (rows, columns), direction)[1]
        for ours, a, b in zip(second, gradient(*after), gradient(*before), strict=True):
            assert np.any(ours)
            assert relative_error(ours, (a - b) / (2 * step)) < 1e-6


def test_what_is_no_number_is_passed_on(level):
    images, rows, columns = (np.array(v, np.float32) for v in arrays())
    rows[0, 2, 3], columns[1, 4, 5] = np.nan, np.nan
    rows[2, 0, :2] = columns[2, 1, :2] = np.inf, -np.inf
    images, *positions = map(jnp.asarray, (images, rows, columns))
    found = np.asarray(jax.jit(interpolate)(images, *positions))
    nowhere = np.isnan(rows) | np.isnan(columns)
    assert np.isnan(found[nowhere]).all()
    assert np.isfinite(found[~nowhere]).all()
    gradient = jax.jit(jax.grad(lambda x: interpolate(x, *positions).sum()))(images)
    assert np.isfinite(gradient[2]).all()


# Platforms -------------------------------------------------------------------------------------


def gradient_in(*arguments):
    return jax.jit(jax.value_and_grad(lambda *v: (interpolate(*v) ** 2).sum(), arguments))


@pytest.mark.skipif(COMPILED is None, reason="invclr_jax/native is not compiled here")
@pytest.mark.parametrize(("arguments", "used"), [((1, 2), CALLS[::2]), ((0,), CALLS[:2])])
def test_only_what_is_asked_for_is_computed(arguments, used):
    program = gradient_in(*arguments).lower(*arrays()).as_text()
    counts = {name: program.count(f"invclr_{name}_{COMPILED}(") for name in CALLS}
    assert counts == {name: int(name in used) for name in CALLS}


@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
def test_gathers_elsewhere(platform):
    traced = gradient_in(0, 1, 2).trace(*arrays())
    program = traced.lower(lowering_platforms=(platform,)).as_text()
    assert "invclr_" not in program
    assert "stablehlo.gather" in program
    assert "stablehlo.scatter" in program


def test_without_a_library_there_are_gathers(monkeypatch):
    monkeypatch.setattr(library, "library", lambda: None)
    program = gradient_in(0, 1, 2).lower(*arrays((2, 3, 4, 3), (5, 6))).as_text()
    assert "invclr_" not in program


def test_half_precision_is_interpolated_too():
    images, rows, columns = arrays()
    found = interpolate(images.astype("bfloat16"), *(v.astype("bfloat16") for v in (rows, columns)))
    assert found.dtype == "bfloat16"


@pytest.mark.parametrize(
    ("images", "rows", "columns"),
    [
        ((2, 5, 4, 3), (3, 5, 4), (3, 5, 4)),
        ((2, 5, 4, 3), (2, 5, 4), (2, 5, 3)),
        ((5, 4, 3), (2, 5, 4), (2, 5, 4)),
        ((2, 0, 4, 3), (2, 5, 4), (2, 5, 4)),
    ],
)
def test_what_does_not_fit_is_refused(no_shape_checks, images, rows, columns):
    """In C++ it would be read beyond its end."""
    with pytest.raises(ValueError, match="do not suit"):
        interpolate(*map(jnp.zeros, (images, rows, columns)))


def test_gradients_refuse_too(no_shape_checks, x64):
    x, rows, columns = arrays()
    with pytest.raises(ValueError, match="do not suit"):
        interpolation._weight_gradients(x, rows, columns, x[:, :-1], (1,))
    with pytest.raises(ValueError, match="do not suit"):
        interpolation._image_gradient(x, rows, columns, {1: rows[:, 1:]}, (9, 12))
    with pytest.raises(ValueError, match="several dtypes"):
        interpolation._interpolate(x, rows, columns.astype("float32"), {})
