"""One device against eight: the same loss, gradients (through the update) and statistics."""

import contextlib
import functools

import jax
import numpy as np
import pytest

from invclr_jax import parallel
from invclr_jax.checkpoint import Checkpoints
from invclr_jax.training import restore
from invclr_jax.training.step import compile_steps, create_state, train_step
from tests.training.small import rows, small_config, small_recipe

STEPS = 2


def run(config, data, num_devices, state=None, steps=range(STEPS)):
    """The state and metrics after a few steps on the first `num_devices` devices."""
    devices = jax.local_devices()[:num_devices]
    recipe = small_recipe(config, axis=parallel.AXIS, num_devices=num_devices)
    step_fn = compile_steps(recipe, devices)
    state = create_state(recipe) if state is None else state
    state = parallel.replicate(state, devices)
    table = parallel.replicate(rows(data), devices)
    order = np.random.default_rng(1).permutation(40).astype(np.int32)
    for step in steps:
        batch = order[step * 16 : (step + 1) * 16].reshape(num_devices, -1)
        state, metrics = step_fn(step, state, table, parallel.distribute(batch, devices))
    return jax.device_get((state, metrics))


CASES = {
    "simclr plain, online probe": {"penalty.weight": 0.0, "online_probe.enabled": True},
    "simclr nt_xent, sampled": {"contrastive.loss": "nt_xent"},
    "simclr images, moments, centred": {
        "data": "cifar10",
        "penalty.estimator": "moments",
        "penalty.feature": "centred",
    },
    "simclr forward, relative, two groups of devices": {
        "penalty.estimator": "forward",
        "penalty.feature": "relative",
        "model.conv": "auto",
        "batch_norm.scope": "groups",
        "batch_norm.groups": 2,
    },
    "simclr images, exact": {"data": "cifar10", "penalty.estimator": "exact"},
    "simclr finite": {"penalty.estimator": "finite"},
    "simclr images, canonical, views": {
        "data": "cifar10",
        "penalty.estimator": "finite",
        "penalty.feature": "canonical",
        "penalty.pair": "views",
    },
    "moco images, plain": {"method": "moco", "data": "cifar10", "penalty.weight": 0.0},
    "moco sampled": {"method": "moco"},
    "moco images, canonical, views": {
        "method": "moco",
        "data": "cifar10",
        "penalty.estimator": "finite",
        "penalty.feature": "canonical",
        "penalty.pair": "views",
    },
    "byol images, two groups": {
        "method": "byol",
        "data": "cifar10",
        "batch_norm.scope": "groups",
        "batch_norm.groups": 2,
    },
    "simsiam": {"method": "simsiam"},
    "barlow twins": {"method": "barlow_twins"},
    "vicreg, three views": {"method": "vicreg", "views.number": 3},
    "moco v3": {"method": "moco_v3"},
    "emp images, two groups of devices, smaller views": {
        "method": "emp",
        "data": "cifar10",
        "views.size": 4,
        "batch_norm.scope": "groups",
        "batch_norm.groups": 2,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_eight_devices_equal_one(x64, name):
    options = {"model.dtype": "float64", "penalty.clip": 1e9} | CASES[name]
    data, method = options.pop("data", "spirograph"), options.pop("method", "simclr")
    config = small_config(data, method, **options)
    (one, one_metrics), (eight, eight_metrics) = (run(config, data, n) for n in (1, 8))
    for term in one_metrics:
        np.testing.assert_allclose(eight_metrics[term], one_metrics[term][0], rtol=1e-9)
    for mine, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(eight), strict=True):
        for copy in theirs:
            np.testing.assert_allclose(copy, mine[0], rtol=1e-9, atol=1e-11)
    assert int(one.step[0]) == STEPS


@pytest.mark.parametrize("counts", [(8, 1), (1, 8)])
def test_a_checkpoint_goes_on_with_another_number_of_devices(x64, tmp_path, counts):
    """Saved on 8 and restored on 1, and the reverse: the trajectory of one device throughout."""
    config = small_config(**{"model.dtype": "float64", "penalty.weight": 0.0})
    first, _ = run(config, "spirograph", counts[0], steps=[0])
    first = jax.tree.map(lambda leaf: leaf[0], first)
    with contextlib.closing(Checkpoints(tmp_path, keep=1)) as checkpoints:
        checkpoints.save(1, **restore.parts(first), config=config.to_dict())
        checkpoints.wait()
        step, stored = checkpoints.newest(restore.parts(first))
    assert step == 1
    second, _ = run(config, "spirograph", counts[1], restore.from_parts(**stored), steps=[1])
    straight, _ = run(config, "spirograph", 1)
    for mine, theirs in zip(jax.tree.leaves(straight), jax.tree.leaves(second), strict=True):
        np.testing.assert_allclose(theirs[-1], mine[0], rtol=1e-9, atol=1e-11)


def test_seeds_share_one_program():
    """A program that held the seed as a constant would be compiled anew for each."""

    def program(seed):
        recipe = small_recipe(small_config(seed=seed))
        state, table = jax.eval_shape(lambda: create_state(recipe)), rows()
        step = functools.partial(train_step, recipe, True)
        return str(jax.make_jaxpr(step)(state, table, np.arange(16), jax.random.key(0)))

    assert program(0) == program(1)
