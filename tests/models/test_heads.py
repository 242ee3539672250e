"""Projection heads against golden `contrastive`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.models.heads import MoCoHead, ProjectionHead
from tests.reference import relative_error

# Unoptimised: these programs are compiled for longer than they run.
quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
TOLERANCE = {np.dtype("float64"): 1e-10, np.dtype("float32"): 1e-5}


def nt_xent(p, q, temperature):
    """Mean cross entropy of each vector's partner among all others, by its definition."""
    rows = jnp.concatenate([p, q])
    rows /= jnp.linalg.norm(rows, axis=1, keepdims=True)
    scores = rows @ rows.T / temperature
    scores = jnp.where(jnp.eye(len(rows), dtype=bool), -jnp.inf, scores)
    partner = jnp.roll(jnp.arange(len(rows)), len(p))
    return -jax.nn.log_softmax(scores)[jnp.arange(len(rows)), partner].mean()


def load(golden, dtype):
    arrays = {name: jnp.asarray(a, dtype) for name, a in golden("contrastive").items()}
    params = {
        "dense1": {"kernel": arrays["head_w1"]},
        "bn1": {"scale": arrays["head_bn1_scale"], "bias": arrays["head_bn1_bias"]},
        "dense2": {"kernel": arrays["head_w2"]},
    }
    return arrays, params


def test_projection_head(golden, precision):
    arrays, params = load(golden, precision)
    head = ProjectionHead(arrays["head_w2"].shape[1])
    stats = quick_jit(head.init)(jax.random.key(0), arrays["head_h1"])["batch_stats"]

    def loss(params, h1, h2):
        variables = {"params": params, "batch_stats": stats}
        z1, state = head.apply(variables, h1, train=True, mutable=["batch_stats"])
        variables |= state
        z2, state = head.apply(variables, h2, train=True, mutable=["batch_stats"])
        return nt_xent(z1, z2, 0.5), (z1, z2, state["batch_stats"])

    graded = quick_jit(jax.value_and_grad(loss, (0, 1, 2), has_aux=True))
    (value, (z1, z2, running)), (d_params, d_h1, d_h2) = graded(
        params, arrays["head_h1"], arrays["head_h2"]
    )
    got = {
        "z1": z1,
        "z2": z2,
        "loss_tau05": value,
        "d_h1": d_h1,
        "d_h2": d_h2,
        "d_w1": d_params["dense1"]["kernel"],
        "d_w2": d_params["dense2"]["kernel"],
        "d_bn1_scale": d_params["bn1"]["scale"],
        "d_bn1_bias": d_params["bn1"]["bias"],
        "running_mean1": running["bn1"]["mean"],
        "running_mean2": running["bn2"]["mean"],
    }
    for name, array in got.items():
        assert relative_error(array, arrays[f"head_{name}"]) < TOLERANCE[precision], name
    count = len(z1)
    for layer in (1, 2):
        # Torch's running variance is unbiased, ours is not; both start at 1 and keep 0.9 twice.
        unbiased = 0.81 + (running[f"bn{layer}"]["var"] - 0.81) * count / (count - 1)
        error = relative_error(unbiased, arrays[f"head_running_var{layer}"])
        assert error < TOLERANCE[precision], layer


def test_projection_head_has_no_biases():
    variables = jax.eval_shape(ProjectionHead(7).init, jax.random.key(0), jnp.zeros((2, 5)))
    assert jax.tree.map(lambda leaf: leaf.shape, variables["params"]) == {
        "dense1": {"kernel": (5, 5)},
        "bn1": {"scale": (5,), "bias": (5,)},
        "dense2": {"kernel": (5, 7)},
    }


def test_moco_head(x64):
    head = MoCoHead(7, dtype=jnp.float64)
    h = np.random.default_rng(0).normal(size=(4, 5))
    variables = quick_jit(head.init)(jax.random.key(0), h)
    one, two = variables["params"]["dense1"], variables["params"]["dense2"]
    expected = np.maximum(h @ one["kernel"] + 0.5, 0) @ two["kernel"] - 0.25
    one["bias"], two["bias"] = one["bias"] + 0.5, two["bias"] - 0.25
    assert relative_error(head.apply(variables, h, train=True), expected) < 1e-12
    assert set(variables) == {"params"}


@pytest.mark.parametrize("kind", [ProjectionHead, MoCoHead])
def test_bfloat16_projections_are_float32(kind):
    head = kind(dtype=jnp.bfloat16)
    variables = quick_jit(head.init)(jax.random.key(0), jnp.ones((4, 16)))
    output = quick_jit(head.apply)(variables, jnp.ones((4, 16)))
    assert output.dtype == jnp.float32
    assert {leaf.dtype for leaf in jax.tree.leaves(variables)} == {jnp.dtype("float32")}


@pytest.mark.parametrize("kind", [ProjectionHead, MoCoHead])
def test_bfloat16_projections_are_not_rounded(kind):
    """The last layer is in float32: its outputs have digits that bfloat16 cannot hold."""
    head, z = kind(dtype=jnp.bfloat16), np.random.default_rng(0).normal(size=(8, 16))
    variables = quick_jit(head.init)(jax.random.key(0), jnp.asarray(z, jnp.float32))
    output = quick_jit(head.apply)(variables, jnp.asarray(z, jnp.float32))
    rounded = output.astype(jnp.bfloat16).astype(jnp.float32)
    assert np.mean(np.asarray(rounded) != np.asarray(output)) > 0.9
