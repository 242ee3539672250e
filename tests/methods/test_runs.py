"""Runs of the methods: resume to the bit, low precision, and the warning of collapse."""

import json
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax import api
from invclr_jax.checkpoint import load_encoder
from invclr_jax.training import loop
from invclr_jax.training.step import create_state
from tests.own import Collector, PlainNet, pictures
from tests.training.small import rows, small_config, small_recipe
from tests.training.test_chunks import gradient_of

METHODS = ("byol", "simsiam", "barlow_twins", "vicreg", "moco_v3", "emp")
RESUMED = [
    method if method in ("byol", "emp") else pytest.param(method, marks=pytest.mark.slow)
    for method in METHODS
]


def config_for(method, **options):
    common = {"num_steps": 4, "checkpoint.every_steps": 2, "log.every_steps": 2}
    common |= {"log.tensorboard": False, "penalty.weight": 0.0}
    return small_config("mine", method, **common | options)


def train(config, workdir, **options):
    return api.train(config, workdir, encoder=PlainNet(), dataset=pictures(32), **options)


class PullsThePlug(Collector):
    """Stops the run before its last checkpoint, when the one of step 2 is written."""

    def write(self, step, metrics):
        super().write(step, metrics)
        if step == 4:
            raise KeyboardInterrupt


@pytest.mark.parametrize("method", RESUMED)
def test_a_run_resumes_to_the_bit(tmp_path, method):
    config = config_for(method)
    whole = train(config, tmp_path / "whole", writers=[])
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "parts", writers=[PullsThePlug()])
    again = Collector()
    resumed = train(config, tmp_path / "parts", writers=[again])
    assert [step for step, _ in again.seen] == [4], "it must go on from the checkpoint of step 2"
    leaves = zip(jax.tree.leaves(resumed.state), jax.tree.leaves(whole.state), strict=True)
    for mine, theirs in leaves:
        np.testing.assert_array_equal(mine, theirs)
    assert load_encoder(tmp_path / "parts", trust=("tests",)).step == 4


@pytest.mark.parametrize("method", METHODS)
def test_bfloat16_keeps_parameters_and_loss_in_float32(method):
    options = {"model.dtype": "bfloat16", "penalty.weight": 0.0}
    recipe = small_recipe(small_config(method=method, **options))
    state, x = create_state(recipe), jnp.asarray(rows()["image"][:16])
    (value, outcome), grads = jax.eval_shape(gradient_of(recipe, state, x, False), state.params)
    assert value.dtype == jnp.float32
    for tree in (grads, outcome.statistics, outcome.state, outcome.terms):
        assert {leaf.dtype.name for leaf in jax.tree.leaves(tree)} <= {"float32"}
    same = jax.tree.map(lambda new, old: new.shape == old.shape, outcome.state, state.method)
    assert all(jax.tree.leaves(same)), "the state must fit itself in the next step"


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_bfloat16_is_near_float32(method):
    """Loss and gradient: eight bits are left of a product, and batch norm makes them matter."""
    x, found = jnp.asarray(rows()["image"][:16]), {}
    for dtype in ("float32", "bfloat16"):
        options = {"model.dtype": dtype, "penalty.weight": 0.0}
        recipe = small_recipe(small_config(method=method, **options))
        state = create_state(recipe)
        (value, _), grads = jax.jit(gradient_of(recipe, state, x, False))(state.params)
        flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(grads)])
        found[dtype] = float(value), flat
    (value, gradient), (low, rough) = found["float32"], found["bfloat16"]
    assert low == pytest.approx(value, rel=0.05, abs=0.02)
    cosine = gradient @ rough / np.linalg.norm(gradient) / np.linalg.norm(rough)
    assert cosine > 0.9


def test_collapse_is_told_once(tmp_path, monkeypatch, caplog):
    original, values = loop._numbers, iter([0.5, 0.001, 0.001, 0.5, 0.5, 0.001])
    monkeypatch.setattr(
        loop, "_numbers", lambda metrics: original(metrics) | {"projection_std": next(values)}
    )
    monkeypatch.setattr(loop.collapse, "SMALLEST_RANK", 0.0)
    config = config_for("simsiam", **{"num_steps": 6, "log.every_steps": 1})
    with caplog.at_level(logging.WARNING):
        train(config, tmp_path)
    told = [record.getMessage() for record in caplog.records if "collapsed" in record.message]
    assert [message.split(":")[0] for message in told] == ["step 2", "step 6"]
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert {"effective_rank", "positive_similarity"} <= json.loads(lines[0]).keys()
