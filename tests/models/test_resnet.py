"""Encoders against golden `resnet`, their shapes, and the mistakes they refuse."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.models import resnet
from tests.reference import relative_error

ENCODERS = {"ResNet18": resnet.ResNet18, "ResNet34": resnet.ResNet34, "ResNet50": resnet.ResNet50}
BLOCKS = ("basic", "bottleneck", "bottleneck_s2")
# Unoptimised: these programs are compiled for longer than they run.
quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
TOLERANCE = {np.dtype("float64"): 1e-10, np.dtype("float32"): 1e-5}


def load_block(golden, name, dtype, conv="auto"):
    """The block, its variables and its input as the golden file has them."""
    arrays = golden("resnet")
    kind = resnet.BasicBlock if name == "basic" else resnet.Bottleneck
    block = kind(arrays[f"{name}_conv2_kernel"].shape[2], int(arrays[f"{name}_stride"]), conv=conv)
    x = jnp.asarray(arrays[f"{name}_input"], dtype)
    variables = jax.eval_shape(block.init, jax.random.key(0), x)
    params = {
        layer: {leaf: jnp.asarray(arrays[f"{name}_{layer}_{leaf}"], dtype) for leaf in leaves}
        for layer, leaves in variables["params"].items()
    }
    start = {"mean": jnp.zeros, "var": jnp.ones}
    stats = {
        layer: {leaf: start[leaf](s.shape, s.dtype) for leaf, s in leaves.items()}
        for layer, leaves in variables["batch_stats"].items()
    }
    return block, {"params": params, "batch_stats": stats}, x


def count(tree):
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


@pytest.mark.parametrize("name", ENCODERS)
def test_parameter_counts(golden, name):
    arrays = golden("resnet")
    encoder = ENCODERS[name]()
    image = jax.ShapeDtypeStruct((1, 32, 32, 3), jnp.float32)
    variables = jax.eval_shape(encoder.init, jax.random.key(0), image)
    params = variables["params"]
    stages = [
        sum(count(leaves) for key, leaves in params.items() if key.split("_")[0] == stage)
        for stage in arrays["stage_names"]
    ]
    kernels = [leaf for leaf in jax.tree.leaves(params) if leaf.ndim == 4]
    assert count(params) == arrays[f"{name}_count_total"]
    assert stages == arrays[f"{name}_count_stages"].tolist()
    assert count(kernels) == arrays[f"{name}_count_conv"]
    assert len(jax.tree.leaves(variables["batch_stats"])) == 2 * arrays[f"{name}_num_batchnorm"]
    assert encoder.representation_dim == arrays[f"{name}_representation_dim"]


@pytest.mark.parametrize("name", BLOCKS)
def test_block_in_training(golden, precision, name):
    arrays, limit = golden("resnet"), TOLERANCE[precision]
    block, variables, x = load_block(golden, name, precision)

    def weighted(x):
        output, state = block.apply(variables, x, train=True, mutable=["batch_stats"])
        weights = jnp.asarray(arrays[f"{name}_weights"], precision)
        return (weights * output).sum(), (output, state["batch_stats"])

    gradient, (output, stats) = quick_jit(jax.grad(weighted, has_aux=True))(x)
    assert output.dtype == precision
    assert relative_error(output, arrays[f"{name}_train_output"]) < limit
    assert relative_error(gradient, arrays[f"{name}_train_d_input"]) < limit
    for layer, running in stats.items():
        mean, var = (arrays[f"{name}_{layer}_running_{s}"] for s in ("mean", "var_biased"))
        assert relative_error(running["mean"], mean) < limit
        assert relative_error(running["var"], var) < limit


def test_running_variance_as_pytorch_keeps_it(golden, x64):
    arrays = golden("resnet")
    block, variables, x = load_block(golden, "basic", np.dtype("float64"))
    block = block.clone(unbiased=True)
    train = quick_jit(lambda v: block.apply(v, x, train=True, mutable=["batch_stats"])[1])
    for layer, running in train(variables)["batch_stats"].items():
        expected = arrays[f"basic_{layer}_running_var"]
        assert relative_error(running["var"], expected) < 1e-7


@pytest.mark.parametrize("variant", ["", "_biased"])
@pytest.mark.parametrize("name", BLOCKS)
def test_block_in_evaluation(golden, precision, name, variant):
    arrays = golden("resnet")
    block, variables, x = load_block(golden, name, precision)
    stats = {
        layer: {
            "mean": arrays[f"{name}_{layer}_running_mean"].astype(precision),
            "var": arrays[f"{name}_{layer}_running_var{variant}"].astype(precision),
        }
        for layer in variables["batch_stats"]
    }
    output = quick_jit(block.apply)(variables | {"batch_stats": stats}, x)
    assert relative_error(output, arrays[f"{name}_eval_output{variant}"]) < TOLERANCE[precision]


def build(block=resnet.BasicBlock, size=32, **options):
    """A network of two blocks, to compile quickly."""
    encoder = resnet.ResNet(block, (1, 1), width=4, **options)
    images = np.random.default_rng(0).uniform(size=(3, size, size + 1, 3)).astype(np.float32)
    return encoder, quick_jit(encoder.init)(jax.random.key(0), images), images


@pytest.mark.parametrize(
    ("stem", "size", "shape"), [("cifar", 8, (8, 9)), ("standard", 64, (16, 17)), ("auto", 8, None)]
)
def test_stems(stem, size, shape):
    encoder, variables, images = build(stem=stem, size=size)
    kernel = variables["params"]["stem_conv"]["kernel"]
    assert kernel.shape == ((7, 7, 3, 4) if stem == "standard" else (3, 3, 3, 4))
    see = lambda v, x: encoder.apply(v, x, capture_intermediates=True)[1]  # noqa: E731
    intermediates = jax.eval_shape(see, variables, images)["intermediates"]
    if shape is not None:
        assert intermediates["layer1_block0"]["__call__"][0].shape == (3, *shape, 4)


def loss(encoder, variables, images, direction):
    """The squared change of the representation along a direction: second order in gradients."""
    represent = lambda x: encoder.apply(variables, x, train=True)  # noqa: E731
    return jnp.square(jax.jvp(represent, (images,), (direction,))[1]).sum()


def test_second_order_through_the_standard_stem(x64):
    encoder, variables, images = build(stem="standard", size=64, dtype=jnp.float64)
    rng = np.random.default_rng(1)
    images, direction, step = (jnp.asarray(rng.normal(size=images.shape)) for _ in range(3))
    value = quick_jit(lambda x: loss(encoder, variables, x, direction))
    gradient = quick_jit(jax.grad(lambda x: loss(encoder, variables, x, direction)))(images)
    size = 1e-6
    numeric = (value(images + size * step) - value(images - size * step)) / (2 * size)
    assert relative_error((gradient * step).sum(), numeric) < 1e-5


def test_rematerialisation_changes_nothing(x64):
    encoder, variables, images = build(resnet.Bottleneck, size=8, dtype=jnp.float64)
    gradients = [
        quick_jit(jax.grad(lambda v, e=e: loss(e, v, images, images)))(variables)["params"]
        for e in (encoder, encoder.clone(remat=True))
    ]
    for plain, remat in zip(*map(jax.tree.leaves, gradients), strict=True):
        assert relative_error(remat, plain) < 1e-9


def test_bfloat16_is_near_float32():
    encoder, variables, images = build(size=8)
    low = encoder.clone(dtype=jnp.bfloat16)

    @functools.partial(quick_jit, static_argnums=0)
    def train(encoder, variables):
        return encoder.apply(variables, images, train=True, mutable=["batch_stats"])

    z, state = train(low, variables)
    expected, _ = train(encoder, variables)
    assert z.dtype == jnp.float32
    assert {leaf.dtype for leaf in jax.tree.leaves(state)} == {jnp.dtype("float32")}
    assert 1e-5 < relative_error(z, expected) < 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width must be a positive number of channels, got 0"),
        ({"stem": "imagenet"}, "stem 'imagenet' is unknown: use one of cifar, standard, auto"),
        ({"conv": "fft"}, "conv 'fft' is unknown: use one of auto, xla"),
    ],
)
def test_refused_options(options, message):
    with pytest.raises(ValueError, match=message):
        resnet.ResNet18(**options)


def test_refused_images(no_shape_checks):
    with pytest.raises(ValueError, match=r"takes images \[n, height, width, channels\], got shape"):
        jax.eval_shape(resnet.ResNet18().init, jax.random.key(0), jnp.zeros((32, 32, 3)))


@pytest.mark.parametrize("channels", [1, 5])
def test_any_number_of_channels(channels):
    shape = jax.ShapeDtypeStruct((2, 8, 8, channels), jnp.float32)
    variables = jax.eval_shape(resnet.ResNet10(width=4).init, jax.random.key(0), shape)
    assert variables["params"]["stem_conv"]["kernel"].shape == (3, 3, channels, 4)


def test_standard_stem_needs_large_images():
    with pytest.raises(ValueError, match='64 pixels or more, got 32: use stem="cifar"'):
        resnet.check_stem("standard", 32)
    with pytest.raises(ValueError, match="64 pixels or more, got 32"):
        build(stem="standard")
