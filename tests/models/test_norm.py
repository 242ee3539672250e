"""Batch norm: statistics over groups and devices, precision, and refused settings."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.models.norm import BatchNorm, norm_groups, normalise
from invclr_jax.parallel import AXIS, replicate, shard_rows
from tests.reference import relative_error

SHAPE = (32, 3, 2, 5)


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(0)
    x, weights = rng.normal(3, 2, SHAPE), rng.normal(size=SHAPE)
    params = {"scale": rng.uniform(0.5, 2, SHAPE[-1]), "bias": rng.normal(size=SHAPE[-1])}
    return x, weights, params


def reference(x, params, groups):
    """Each group of rows normalised alone, and the running statistics after one step, in NumPy."""
    rows = x.reshape(groups, -1, x.shape[-1])
    mean, var = rows.mean(1, keepdims=True), rows.var(1, keepdims=True)
    y = (rows - mean) / np.sqrt(var + 1e-5) * params["scale"] + params["bias"]
    running = {"mean": 0.1 * mean.mean((0, 1)), "var": 0.9 + 0.1 * var.mean((0, 1))}
    return y.reshape(x.shape), running


def start(params):
    stats = {"mean": np.zeros(SHAPE[-1]), "var": np.ones(SHAPE[-1])}
    return jax.tree.map(jnp.asarray, {"params": params, "batch_stats": stats})


@functools.partial(jax.jit, static_argnums=0)
def apply(norm, variables, x):
    y, state = norm.apply(variables, x, train=True, mutable=["batch_stats"])
    return y, state["batch_stats"]


@pytest.mark.parametrize("groups", [1, 4])
def test_each_group_is_normalised_alone(x64, batch, groups):
    x, _, params = batch
    y, running = apply(BatchNorm(groups=groups), start(params), x)
    expected, expected_running = reference(x, params, groups)
    assert relative_error(y, expected) < 1e-12
    for name in running:
        assert relative_error(running[name], expected_running[name]) < 1e-12


def penalised(norm, variables, x, weights):
    """A loss whose gradient holds first and second derivatives of the norm."""

    def loss(params, x):
        respond = lambda x: apply(norm, {**variables, "params": params}, x)[0]  # noqa: E731
        y, slope = jax.jvp(respond, (x,), (weights,))
        return (weights * jnp.tanh(y)).sum() + jnp.square(slope).sum()

    return jax.grad(loss, (0, 1))(variables["params"], x)


@pytest.mark.parametrize("groups", [1, 2, 4, 8, 16])
def test_eight_devices_equal_one(x64, batch, groups):
    x, weights, params = batch
    single, spread = BatchNorm(groups=groups), BatchNorm(AXIS, groups)

    def evaluate(norm, variables, x, weights):
        d_params, d_x = penalised(norm, variables, x, weights)
        total = jax.lax.psum(d_params, norm.axis) if norm.axis else d_params
        return apply(norm, variables, x), (total, d_x)

    alone = jax.jit(functools.partial(evaluate, single))
    mapped = jax.pmap(functools.partial(evaluate, spread), axis_name=AXIS)
    (y, running), (d_params, d_x) = alone(start(params), x, weights)
    shards = shard_rows((x, weights), 8)
    (y8, running8), (d_params8, d_x8) = mapped(replicate(start(params)), *shards)
    assert relative_error(y8.reshape(SHAPE), y) < 1e-12
    assert relative_error(d_x8.reshape(SHAPE), d_x) < 1e-10
    for name, leaf in d_params.items():
        assert relative_error(d_params8[name][3], leaf) < 1e-10
    for name, leaf in running.items():
        assert relative_error(running8[name][0], leaf) < 1e-12
        assert (running8[name] == running8[name][:1]).all(), "devices disagree"


def test_variance_survives_a_large_mean(batch):
    x, _, params = batch
    x = jnp.asarray(x + 1000, jnp.float32)
    y, _ = apply(BatchNorm(), start(params), x)
    assert relative_error(y, reference(np.asarray(x, np.float64), params, 1)[0]) < 1e-4


def test_statistics_are_float32_under_bfloat16(batch):
    x, _, params = batch
    x = jnp.asarray(x, jnp.bfloat16)
    y, running = apply(BatchNorm(dtype=jnp.bfloat16), start(params), x)
    expected, expected_running = reference(np.asarray(x, np.float64), params, 1)
    assert y.dtype == jnp.bfloat16
    assert relative_error(y, expected) < 1e-2
    for name in running:
        assert running[name].dtype == jnp.float32
        assert relative_error(running[name], expected_running[name]) < 1e-6


def test_agrees_with_flax(x64, batch):
    x, _, params = batch
    theirs = nn.BatchNorm(use_running_average=False, momentum=0.9)
    y, state = theirs.apply(start(params), x, mutable=["batch_stats"])
    ours, running = apply(BatchNorm(), start(params), jnp.asarray(x))
    assert relative_error(ours, y) < 1e-12
    assert relative_error(running["var"], state["batch_stats"]["var"]) < 1e-12


def test_running_statistics_stand_still_where_they_are_not_mutable(batch):
    x, _, params = batch
    y = BatchNorm().apply(start(params), jnp.asarray(x), train=True)
    assert relative_error(y, reference(x, params, 1)[0]) < 1e-5


@pytest.mark.parametrize(
    ("scope", "groups", "expected"), [("global", 3, 1), ("per_device", 3, 8), ("groups", 16, 16)]
)
def test_scopes(scope, groups, expected):
    assert norm_groups(scope, groups, 8, 64) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("local", 1, 8), "scope 'local' is unknown: use one of global"),
        (("groups", 0, 8), "at least one group, got 0"),
        (("groups", 3, 8), "3 batch norm groups do not fit 8 devices"),
        (("groups", 16, 8, 40), "batch of 40 does not split into 16"),
    ],
)
def test_refused_settings(arguments, message):
    with pytest.raises(ValueError, match=message):
        norm_groups(*arguments)


def test_a_batch_that_does_not_split_is_refused(batch):
    x, _, params = batch
    with pytest.raises(ValueError, match="32 images on a device do not split into 5"):
        apply(BatchNorm(groups=5), start(params), jnp.asarray(x))


def test_closed_form_equals_automatic_differentiation(x64):
    """First, second and third derivatives in x, scale and bias, of y and of both statistics."""
    rng = np.random.default_rng(2)
    operands = tuple(jnp.asarray(rng.normal(size=shape)) for shape in ((2, 12, 3), (3,), (3,)))
    direction = tuple(jnp.asarray(rng.normal(size=a.shape)) for a in operands)

    def plain(x, scale, bias):
        mean = x.mean(1, keepdims=True)
        var = jnp.square(x - mean).mean(1, keepdims=True)
        x_hat = (x - mean) / jnp.sqrt(var + 1e-5)
        return x_hat * scale.reshape(1, 1, -1) + bias.reshape(1, 1, -1), mean, var

    def derivatives(function):
        loss = lambda *a: sum(jnp.sin(out).sum() for out in function(*a))  # noqa: E731
        slope = lambda *a: jax.jvp(loss, a, direction)[1]  # noqa: E731
        bend = lambda *a: jax.jvp(slope, a, direction)[1]  # noqa: E731
        return [jax.grad(f, (0, 1, 2))(*operands) for f in (loss, slope, bend)]

    found = derivatives(lambda x, scale, bias: normalise(x, scale, bias, None, 1, 1e-5, x.dtype))
    for ours, expected in zip(*map(jax.tree.leaves, (found, derivatives(plain))), strict=True):
        assert relative_error(ours, expected) < 1e-10


@pytest.mark.parametrize(("devices", "groups"), [(1, 1), (1, 4), (8, 2)])
def test_unbiased_running_variance(batch, devices, groups):
    """PyTorch's: each group's variance times n/(n-1), for its n values on all devices."""
    x, _, params = batch
    norm = BatchNorm(AXIS if devices > 1 else None, groups, unbiased=True)
    _, expected = reference(x, params, groups)
    count = x.size // x.shape[-1] // groups
    var = 0.9 + (expected["var"] - 0.9) * count / (count - 1)
    variables = start(params)
    if devices == 1:
        running = apply(norm, variables, jnp.asarray(x))[1]
    else:
        mapped = jax.pmap(lambda v, x: apply(norm, v, x)[1], axis_name=AXIS, in_axes=(None, 0))
        running = jax.tree.map(lambda leaf: leaf[3], mapped(variables, shard_rows(x, devices)))
    assert relative_error(running["var"], var) < 1e-6
    assert relative_error(running["mean"], expected["mean"]) < 1e-6
