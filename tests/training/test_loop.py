"""The loop end to end on a tiny run: resume, stop, refuse, restore anywhere."""

import json
import os
import signal

import jax
import numpy as np
import pytest

from invclr_jax import checkpoint, data, parallel
from invclr_jax import config as configuration
from invclr_jax.training import loop, restore
from tests.training.small import small_config, small_recipe, train_small

STEPS = 6


def config_for(**overrides):
    options = {"num_steps": STEPS, "checkpoint.every_steps": 3, "log.every_steps": 2}
    options |= {"data.num_train": 64, "data.num_test": 16, "log.tensorboard": False}
    return small_config(**options | overrides)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("undisturbed")
    return workdir, train_small(config_for(), workdir)


def logged(workdir):
    return [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]


def assert_same_bits(one, other):
    for mine, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_run_leaves_config_metrics_and_checkpoints(undisturbed):
    workdir, result = undisturbed
    assert result.step == STEPS
    assert int(result.state.step) == STEPS
    lines = logged(workdir)
    assert {2, 4, 6} <= {line["step"] for line in lines}
    assert {"loss", "contrastive", "penalty", "images_per_second", "epoch"} <= lines[0].keys()
    bound = lines[0]["mutual_information_bound"]
    assert bound == pytest.approx(np.log(16) - lines[0]["contrastive"], rel=1e-5)
    assert checkpoint.Checkpoints(workdir).steps() == [3, 6]
    assert json.loads((workdir / "config.json").read_text())["batch_size"] == 16


def test_stopping_and_going_on_gives_the_same_bits(undisturbed, tmp_path, monkeypatch):
    """k steps, SIGTERM, resume, k steps: bit for bit the undisturbed run."""
    original = loop._Run._after_step

    def interrupt(run, state):
        original(run, state)
        if run.step == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(loop._Run, "_after_step", interrupt)
    stopped = train_small(config_for(), tmp_path)
    assert (stopped.signal, stopped.step) == (signal.SIGTERM, 4)
    monkeypatch.setattr(loop._Run, "_after_step", original)
    resumed = train_small(config_for(), tmp_path)
    assert_same_bits(resumed.state, undisturbed[1].state)
    steps = [line["step"] for line in logged(tmp_path)]
    assert steps == sorted(set(steps)), "a step was logged twice"


def test_a_finished_run_is_left_as_it_is(undisturbed):
    workdir, result = undisturbed
    assert_same_bits(train_small(config_for(), workdir).state, result.state)


def test_host_feed_trains_the_same(undisturbed, tmp_path):
    other = train_small(config_for(**{"data.on_device": False}), tmp_path)
    assert_same_bits(other.state, undisturbed[1].state)


def test_another_config_is_refused_with_its_keys(undisturbed):
    workdir, _ = undisturbed
    with pytest.raises(ValueError, match=r"(?s)penalty.weight: 0.1 there, 0.2 here.*another"):
        train_small(config_for(**{"penalty.weight": 0.2}), workdir)


def test_another_config_goes_on_if_told_to(tmp_path):
    train_small(config_for(**{"num_steps": 3}), tmp_path)
    longer = train_small(config_for(), tmp_path, allow_changed_config=True)
    assert longer.step == STEPS
    assert [line["step"] for line in logged(tmp_path)] == [2, 3, 4, 6]


def test_batch_that_does_not_divide_over_the_devices_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"batch size 20 does not divide evenly over 8 devices: use 16 or"
    ):
        train_small(config_for(batch_size=20), tmp_path)
    assert not list(tmp_path.iterdir()), "nothing may be written for a refused config"


def test_non_finite_loss_names_step_term_and_checkpoint(tmp_path, monkeypatch):
    original = loop._numbers
    calls = []

    def poisoned(metrics):
        calls.append(1)
        numbers = original(metrics)
        return numbers | {"penalty": float("nan")} if len(calls) == 5 else numbers

    monkeypatch.setattr(loop, "_numbers", poisoned)
    with pytest.raises(FloatingPointError, match=r"penalty is nan at step 5; .*checkpoint: step 3"):
        train_small(config_for(), tmp_path)
    assert checkpoint.Checkpoints(tmp_path).steps() == [3]


def test_online_probe_leaves_the_encoder_alone(undisturbed, tmp_path):
    probed = train_small(config_for(**{"online_probe.enabled": True}), tmp_path)
    assert_same_bits(probed.state.params, undisturbed[1].state.params)
    assert_same_bits(probed.state.statistics, undisturbed[1].state.statistics)
    weights = probed.state.probe["params"]["weights"]
    assert np.abs(weights).max() > 0
    lines = logged(tmp_path)
    assert "online_probe/mse" in lines[0]


def test_checkpoints_do_not_know_the_number_of_devices(undisturbed):
    """Saved from eight devices; restored as single copies, to be replicated anywhere."""
    workdir, result = undisturbed
    recipe = small_recipe(config_for(), dataset=configuration.load_data(config_for()))
    state, step = restore.restore_or_create(recipe, checkpoint.Checkpoints(workdir))
    assert step == STEPS
    assert_same_bits(state, result.state)
    one = parallel.replicate(state, jax.local_devices()[:1])
    assert_same_bits(parallel.unreplicate(one), result.state)


def test_evaluation_is_called_when_due(tmp_path):
    seen = []

    def evaluate(encoder, dataset):
        assert isinstance(dataset, data.Dataset)
        z = encoder.encode(np.full((2, 8, 8, 3), 0.5, np.float32))
        seen.append((encoder.step, z.shape))
        return {"probe/score": 1.0}

    train_small(config_for(**{"eval.every_steps": 3}), tmp_path, evaluate=evaluate)
    assert seen == [(3, (2, 8)), (6, (2, 8))]
    lines = logged(tmp_path)
    assert sum("probe/score" in line for line in lines) == 2
