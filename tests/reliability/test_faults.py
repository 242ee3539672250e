"""The faults of `experiments.reliability` on real processes, in small numbers."""

import json

import pytest

from experiments.reliability import __main__ as command
from experiments.reliability import (
    damage,
    devices,
    disk,
    imports,
    killed,
    pictures,
    processes,
    report,
    soak,
    weights,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Shared, so that one family's compiled programs serve the next."""
    return tmp_path_factory.mktemp("faults")


# Orbax leaves reads under way when one of them fails; they complain when they are collected.
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
def test_no_damage_to_a_checkpoint_goes_unseen(tmp_path):
    figures = damage.damage(tmp_path)
    assert figures["failures"] == []
    assert figures["refused"] > 40
    assert figures["intact"] > 20


def test_hostile_weights_are_refused_or_right(tmp_path):
    file = tmp_path / "whole.pth"
    file.write_bytes(weights.pth(weights._state_dict))
    assert weights._read(file) == "intact", "the files that are damaged are good ones"
    figures = weights.weights(tmp_path)
    assert figures["failures"] == []
    assert figures["refused"] > 100
    assert figures["calls"] == 12


def test_code_that_runs_is_noticed(tmp_path, monkeypatch):
    """The mark that a hostile pickle would leave counts as a loss."""
    monkeypatch.setattr(weights, "_read", lambda file: (tmp_path / "harm").touch() or "refused")
    monkeypatch.setattr(weights, "CUTS", 1)
    monkeypatch.setattr(weights, "FLIPS", 1)
    figures = weights.weights(tmp_path)
    assert figures["lost"] == figures["tried"] > 20


@pytest.mark.parametrize("kept", [True, False])
def test_broken_pictures_are_named(kept, tmp_path, monkeypatch):
    """A picture that is not broken at all is one that nothing refuses."""
    pytest.importorskip("grain")
    breaks = {"kept": lambda raw: raw} if kept else {"empty": pictures.BREAKS["empty"]}
    monkeypatch.setattr(pictures, "BREAKS", breaks)
    monkeypatch.setattr(pictures, "WORKERS", (0,))
    figures = pictures.pictures(tmp_path)
    assert figures["failures"] == (["kept, 0 workers"] if kept else [])


@pytest.mark.slow
def test_hostile_names_import_nothing(folder):
    figures = imports.imports(folder)
    assert figures["failures"] == []
    assert figures["tried"] == 39


@pytest.mark.slow
def test_killed_runs_end_with_the_same_bits(folder):
    figures = killed.killed(folder, kills=5)
    assert (figures["tried"], figures["survived"]) == (5, 5)
    assert figures["wrong_resumes"] == figures["left_unfinished"] == 0


@pytest.mark.slow
def test_preempted_runs_save_and_go_on(folder):
    assert killed.preempted(folder, times=2)["survived"] == 2


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits(folder):
    assert killed.determinism(folder, times=1)["survived"] == 1


@pytest.mark.slow
def test_a_disk_that_takes_nothing_loses_nothing(folder):
    figures = disk.disk(folder)
    assert figures["lost"] == 0, figures
    assert {"read-only workdir", "file size limit"} <= figures["faults"].keys()


@pytest.mark.slow
def test_other_numbers_of_devices_continue_the_trajectory(folder):
    figures = devices.devices(folder)
    assert figures["survived"] == 1, figures
    assert figures["difference_float32"] > figures["difference_float64"] > 0


@pytest.mark.slow
def test_a_lost_process_ends_the_job_and_a_restart_resumes(folder):
    figures = processes.processes(folder, victims=((2, 1),))
    assert figures["lost"] == 0, figures


@pytest.mark.slow
def test_a_soak_measures_memory_and_files(folder):
    figures = soak.soak(folder, minutes=0.5, every=1.0)
    assert figures["survived"] == 1
    assert figures["checkpoints"] > 3
    assert figures["open_files_largest"] < 100
    assert figures["without_checkpoints"]["steps"] > figures["checkpoints"]


def test_the_page_is_made_of_the_figures(tmp_path):
    out = tmp_path / "page.md"
    figures = {"tried": 987, "survived": 986, "lost": 1}
    for name in ("determinism", "preempted"):
        record = figures | {"slowest_seconds_from_signal_to_exit": 3.21}
        command._write(out, name, {"figures": record, "code_version": "v1"})
    text = out.read_text()
    assert "| 987 | 986 | 1 | v1 |" in text
    assert "3.2 s" in text
    assert "## Same seed again" in text
    assert json.loads(out.with_suffix(".json").read_text())["determinism"]["figures"] == record
    assert set(report.SECTIONS) == {
        *("killed", "preempted", "disk", "damage", "weights", "imports", "pictures"),
        *("devices", "determinism", "processes", "soak"),
    }
