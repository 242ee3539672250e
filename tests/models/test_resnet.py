"""Encoders against golden `resnet`, their shapes, and the mistakes they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.models import resnet
from tests.reference import relative_error

ENCODERS = {"ResNet18": resnet.ResNet18, "ResNet34": resnet.ResNet34, "ResNet50": resnet.ResNet50}
BLOCKS = ("basic", "bottleneck", "bottleneck_s2")
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

    @jax.jit
    def weighted(x):
        output, state = block.apply(variables, x, train=True, mutable=["batch_stats"])
        weights = jnp.asarray(arrays[f"{name}_weights"], precision)
        return (weights * output).sum(), (output, state["batch_stats"])

    gradient, (output, stats) = jax.grad(weighted, has_aux=True)(x)
    assert output.dtype == precision
    assert relative_error(output, arrays[f"{name}_train_output"]) < limit
    assert relative_error(gradient, arrays[f"{name}_train_d_input"]) < limit
    for layer, running in stats.items():
        mean, var = (arrays[f"{name}_{layer}_running_{s}"] for s in ("mean", "var_biased"))
        assert relative_error(running["mean"], mean) < limit
        assert relative_error(running["var"], var) < limit


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
    output = block.apply(variables | {"batch_stats": stats}, x)
    assert relative_error(output, arrays[f"{name}_eval_output{variant}"]) < TOLERANCE[precision]
