"""Metric writers: one's own, several at once, and those that fail."""

import json
import logging
import os

import pytest

from invclr_jax.training import writers
from tests import own
from tests.training.small import small_config, train_small


def test_a_writer_of_ones_own_gets_every_report_and_is_closed(tmp_path):
    mine = own.Collector()
    config = small_config(num_steps=2, **{"log.every_steps": 1, "data.num_train": 64})
    train_small(config, tmp_path, writers=[mine])
    assert [step for step, _ in mine.seen] == [1, 2]
    assert {"loss", "penalty", "epoch", "images_per_second"} <= mine.seen[0][1].keys()
    assert mine.closed == 1
    assert not (tmp_path / writers.METRICS).exists(), "the list replaces the usual writers"


def test_a_writer_that_fails_is_reported_once_and_left_out(caplog):
    broken, fine = own.Collector(fail_at=2), own.Collector()
    group = writers.Writers([broken, fine])
    with caplog.at_level(logging.WARNING):
        for step in (1, 2, 3):
            group.write(step, {"loss": 1.0})
        group.close()
    assert [step for step, _ in fine.seen] == [1, 2, 3]
    assert [step for step, _ in broken.seen] == [1]
    assert (broken.closed, fine.closed) == (1, 1)
    said = [record.message for record in caplog.records]
    assert said == [
        "Collector failed (the wire is cut): metrics no longer go there, training goes on"
    ]


def test_an_evaluation_takes_one_short_line(capsys):
    shown = writers.Progress(10)
    shown.write(5, {"epoch": 0.5, "loss": 2.0, "images_per_second": 80.0})
    shown.write(5, {"epoch": 0.5, **{f"metric/{i}": 0.25 for i in range(40)}})
    shown.close()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("step 5/10 (50.0%) epoch 0.50 | loss 2 | 80 images/s | ETA")
    assert second.startswith("evaluated at step 5: ")
    assert len(second) < 100
    assert "images/s" not in second


def test_json_lines_go_on_where_a_run_resumes(tmp_path):
    path = tmp_path / "m.jsonl"
    for start in (0, 1):
        lines = writers.JsonLines(path, start_step=start)
        lines.write(start + 1, {"loss": 1.0})
        lines.write(start + 2, {"loss": 2.0})
        lines.close()
    steps = [json.loads(line)["step"] for line in path.read_text().splitlines()]
    assert steps == [1, 2, 3]


@pytest.mark.filterwarnings("ignore")
def test_wandb_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.chdir(tmp_path)
    tracker = writers.Tracker("wandb", project="test", config={"seed": 1}, mode="offline")
    tracker.write(3, {"loss": 0.5})
    tracker.close()
    runs = [name for name in os.listdir(tmp_path / "wandb") if name.startswith("offline-run")]
    assert len(runs) == 1
    assert any(path.suffix == ".wandb" for path in (tmp_path / "wandb" / runs[0]).iterdir())


@pytest.mark.filterwarnings("ignore")
def test_trackio_keeps_everything_local(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    trackio = pytest.importorskip("trackio")
    tracker = writers.Tracker("trackio", project="test", name="one", embed=False)
    tracker.write(3, {"loss": 0.5})
    tracker.close()
    assert list(tmp_path.rglob("*.db")), f"nothing of trackio {trackio.__version__} in its folder"


def test_an_unknown_tracker_is_refused():
    with pytest.raises(ValueError, match="no tracker 'mlflow': use one of wandb, trackio"):
        writers.Tracker("mlflow", project="x")
