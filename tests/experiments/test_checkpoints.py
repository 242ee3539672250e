"""Measurements on checkpoints: finished runs once each, in a file that is added to."""

import json

import numpy as np
import pytest

from experiments import directions
from experiments.checkpoints import MEASUREMENTS, measure_all
from invclr_jax.data import load
from tests.tiny_run import make_run, tiny_config


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A finished run, one with steps to go, and one that has saved nothing yet."""
    for name, value in (("TRAIN", 40), ("TEST", 24), ("VIEWS", 3)):
        monkeypatch.setattr(directions, name, value)
    data = load("spirograph", num_train=16, num_test=8)
    for run, steps in (("none/seed0", 4), ("none/seed1", 8)):
        make_run(tmp_path / "runs" / run, tiny_config(num_steps=steps), data)
    (tmp_path / "runs/none/seed2/checkpoints").mkdir(parents=True)
    return tmp_path / "runs"


def test_finished_runs_are_measured_once(root, tmp_path, monkeypatch):
    out = tmp_path / "results" / "directions.json"
    found = measure_all("directions", root, out)
    assert list(found) == ["none/seed0"]
    assert set(found["none/seed0"]) == set(MEASUREMENTS["directions"])
    assert np.isfinite(list(found["none/seed0"].values())).all()
    record = json.loads(out.read_text())
    assert record["runs"] == found
    assert record["training"]["none/seed0"]["config"]["num_steps"] == 4
    monkeypatch.setattr(directions, "measure", None)  # a second time would fail
    assert measure_all("directions", root, out) == found
    del record["training"]  # as older files
    out.write_text(json.dumps(record))
    assert measure_all("directions", root, out) == found
    assert json.loads(out.read_text())["training"].keys() == found.keys()


def test_unknown_measurements_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no measurement 'rank': use one of directions"):
        measure_all("rank", tmp_path, tmp_path / "rank.json")
