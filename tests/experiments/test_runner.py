"""Two real steps through the runner: trained once, evaluated once, recorded without paths."""

import dataclasses
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import batch, runner, runs
from invclr_jax.evaluation.settings import Settings
from tests.experiments.synthetic import metric_names
from tests.tiny_run import tiny_config, tiny_images

SMALL = Settings(
    num_samples=(1, 2), fractions=(0.5, 1.0), num_images=4, num_alphas=3, ensemble_samples=2
)


def small(name):
    config = tiny_config(name, **{"model.name": "resnet10", "model.conv": "xla"})
    config.num_steps, config.log.every_steps, config.log.tensorboard = 2, 1, False
    return config


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Makes the scale cpu tiny; returns the places."""
    kinds = {"factors": SMALL, "pictures": SMALL}
    monkeypatch.setitem(runs.BASES, "cpu", {name: name for name in ("spirograph", "cifar10")})
    monkeypatch.setattr(runs.configuration, "load", small)
    monkeypatch.setitem(runs.PERIODIC_LIMIT, "cpu", 20)
    monkeypatch.setitem(runner.SETTINGS, "cpu", kinds)
    monkeypatch.setitem(runner.ROWS, "cpu", (60, 30))
    return batch.Places(tmp_path / "runs", tmp_path / "results", "/data/of/this/machine")


def test_a_run_is_trained_evaluated_and_recorded_once(tiny, monkeypatch):
    monkeypatch.setitem(runner.PROTOCOLS, "factors", ("invariance",))  # the others compile for long
    run = runs.Run("cpu", "spirograph", "none")
    record = runner.ensure(run, 1, tiny.workdir, tiny.results)
    assert set(record["metrics"]) < metric_names("spirograph", SMALL)
    assert record["config"]["seed"] == record["seed"] == 1
    assert record["training"]["step"] == [1, 2]
    assert record["trajectory"]["step"] == [1, 2]
    assert len(record["trajectory"]["alpha/ridge/mse/mean"]) == 2
    assert record["seconds"]["train"] > 0
    assert record["code"]["trained"]
    path = runner.record_path(tiny.results, run, 1)
    assert json.loads(path.read_text()) == record

    monkeypatch.setattr(runner, "train", None)  # would fail if called
    assert runner.ensure(run, 1, tiny.workdir, tiny.results) == record


def test_training_alone_leaves_a_checkpoint_and_no_record(tiny):
    run = runs.Run("cpu", "spirograph", "none")
    assert batch.train_all([run], range(1), tiny, evaluate=False) == []
    folder = tiny.workdir / "cpu/spirograph/none/seed0"
    assert (folder / "checkpoints").is_dir()
    assert json.loads((folder / "config.json").read_text())["eval"]["every_steps"] == 0
    assert not tiny.results.exists()


@pytest.mark.slow
def test_spirograph_has_every_metric(tiny):
    run = runs.Run("cpu", "spirograph", "finite-unit-0.1")
    record = runner.ensure(run, 0, tiny.workdir, tiny.results)
    assert set(record["metrics"]) == metric_names("spirograph", SMALL)
    assert np.isfinite(list(record["metrics"].values())).all()


@pytest.mark.slow
def test_pictures_have_every_metric_and_no_path_is_recorded(tiny, monkeypatch):
    monkeypatch.setattr(runner, "_dataset", lambda options, size: tiny_images())
    run = runs.Run("cpu", "cifar10", "finite-relative-0.1")
    record = runner.ensure(run, 0, *dataclasses.astuple(tiny))
    assert set(record["metrics"]) == metric_names("cifar10", SMALL, k=60)
    assert tiny.data_path not in json.dumps(record)
    folder = tiny.workdir / "cpu/cifar10/finite-relative-0.1/seed0"
    assert json.loads((folder / "config.json").read_text())["penalty"]["estimator"] == "finite"


@dataclasses.dataclass
class Ended:
    """What the runner looks at in the result of training."""

    signal: int | None = None


class Evaluated(Exception):
    pass


def test_other_evaluation_settings_evaluate_again_but_do_not_train(tiny, monkeypatch, tmp_path):
    run = runs.Run("cpu", "spirograph", "none")
    known = {"config": run.config(0).to_dict(), "evaluation": runner.evaluation_options(run, 0)}
    known = json.loads(json.dumps(known))
    path = runner.record_path(tiny.results, run, 0)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(known))
    monkeypatch.setattr(runner, "train", lambda *args, **kwargs: Ended())
    monkeypatch.setattr(runner, "_evaluate", _raise)
    assert runner.ensure(run, 0, tiny.workdir, tiny.results) == known
    monkeypatch.setitem(runner.ROWS, "cpu", (61, 30))
    with pytest.raises(Evaluated):
        runner.ensure(run, 0, tiny.workdir, tiny.results)


def _raise(*args):
    raise Evaluated


def test_a_failed_run_does_not_stop_the_others(tiny, monkeypatch, capsys):
    order = []

    def ensure(run, seed, *places):
        order.append((seed, run.name))
        if run.name == "none":
            raise ValueError("no such thing")

    monkeypatch.setattr(batch, "ensure", ensure)
    wanted = batch.wanted_runs([], ["spirograph/none", "spirograph/unit-0.1"], "cpu")
    failed = batch.train_all(wanted, range(2), tiny)
    assert order == [(0, "none"), (0, "unit-0.1"), (1, "none"), (1, "unit-0.1")]
    assert len(failed) == 2
    assert "no such thing" in failed[0]
    assert "[4/4]" in capsys.readouterr().out


def test_programs_of_finished_runs_are_forgotten(tiny, monkeypatch):
    functions, programs = [], []  # those of modules are never collected either

    def ensure(run, seed, *places):
        functions.append(jax.jit(lambda x: x * seed))
        functions[-1](jnp.ones(3)).block_until_ready()
        programs.append(len(jax.devices()[0].client.live_executables()))

    monkeypatch.setattr(batch, "ensure", ensure)
    batch.train_all([runs.Run("cpu", "spirograph", "none")], range(4), tiny)
    assert programs[-1] == programs[1] > 0


def test_a_signal_stops_everything(tiny, monkeypatch):
    run = runs.Run("cpu", "spirograph", "none")
    monkeypatch.setattr(runner, "train", lambda *args, **kwargs: Ended(15))
    with pytest.raises(runner.Stopped) as stopped:
        batch.train_all([run, run], range(1), tiny)
    assert stopped.value.signal == 15


def test_time_of_the_steps_is_read_from_the_log(tmp_path):
    lines = [
        {"step": 10, "images_per_second": 16.0},  # 10 steps of 1 s
        {"step": 10, "invariance/ratio": 0.5},
        {"step": 20, "images_per_second": 8.0},  # 10 steps of 2 s
        {"step": 30, "images_per_second": 1.6},  # 10 steps of 10 s: the machine was busy
    ]
    _write_log(tmp_path, lines)
    assert runner.training_seconds(tmp_path, batch_size=16) == {"train": 130.0, "step": 2.0}


def test_curves_are_thinned_and_keep_the_last_step(tmp_path):
    _write_log(tmp_path, [{"step": step, "loss": 1 / step} for step in range(1, 1001)])
    training = runner.curves(tmp_path)["training"]
    assert training["step"][-1] == 1000
    assert len(training["step"]) <= 2 * runner.LOG_POINTS
    np.testing.assert_allclose(training["loss"], 1 / np.array(training["step"]), rtol=1e-5)


def _write_log(folder: pathlib.Path, lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text)
