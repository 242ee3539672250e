"""Updating equal shapes together gives the numbers of updating each parameter by itself."""

import jax
import numpy as np
import optax
import pytest

from invclr_jax.training import stacking
from invclr_jax.training.optimizer import decayed, lars, sgd
from tests.reference import relative_error

SHAPES = {"a": (3, 4), "b": {"c": (4,), "d": (4,), "e": (3, 4)}, "f": (2, 2, 5), "g": (4,)}


def random_tree(seed):
    rng = np.random.default_rng(seed)
    is_shape = lambda x: isinstance(x, tuple)  # noqa: E731
    return jax.tree.map(lambda s: jax.numpy.asarray(rng.normal(size=s)), SHAPES, is_leaf=is_shape)


def three_updates(tx):
    params = random_tree(0)
    state = tx.init(params)
    for seed in (1, 2, 3):
        updates, state = jax.jit(tx.update)(random_tree(seed), state, params)
        params = optax.apply_updates(params, updates)
    return params


SCHEDULE = optax.linear_schedule(0.5, 0.1, 3)
OPTIMIZERS = {
    "lars": lars(SCHEDULE, weight_decay=0.1),
    "lars, torchlars' rule": lars(SCHEDULE, weight_decay=0.1, rule="torchlars"),
    "lars, kernels only": lars(SCHEDULE, weight_decay=0.1, mask=decayed("batch_norm_and_bias")),
    "sgd": sgd(SCHEDULE, weight_decay=0.1),
}


@pytest.mark.parametrize("size", [0, 12, 1000])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_same_numbers(x64, monkeypatch, name, size):
    monkeypatch.setattr(stacking, "STACKED_SIZE", size)
    tx = OPTIMIZERS[name]
    found, expected = three_updates(stacking.by_shape(tx)), three_updates(tx)
    for ours, theirs in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        assert relative_error(ours, theirs) < 1e-13


def test_one_stack_for_each_shape(monkeypatch):
    monkeypatch.setattr(stacking, "STACKED_SIZE", 15)
    state = stacking.by_shape(optax.trace(0.9)).init(random_tree(0))
    shapes = {name: buffer.trace.shape for name, buffer in state.items()}
    assert shapes == {"3x4": (2, 3, 4), "4": (3, 4), "2x2x5_4": (1, 2, 2, 5)}
