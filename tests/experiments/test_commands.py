"""The command line, as a user starts it."""

import subprocess
import sys

import pytest


def run(*arguments):
    command = [sys.executable, "-m", "experiments.run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_dry_run_prints_the_plan_and_trains_nothing(tmp_path):
    folders = (f"--workdir={tmp_path / 'runs'}", f"--results={tmp_path / 'results'}")
    found = run("table3", "--scale=paper", "--dry_run", "--devices=8", *folders)
    assert found.returncode == 0, found.stderr
    assert "moco_cifar100_resnet50/unit-0.1" in found.stdout
    assert "4 runs × 3 seeds" in found.stdout
    assert "on 8 device(s)" in found.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_unknown_experiment_is_a_sentence():
    found = run("fig9")
    assert found.returncode == 1
    assert "no experiment 'fig9': use all, or some of" in found.stderr
    assert "Traceback" not in found.stderr
