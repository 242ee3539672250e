"""The three command lines as a user starts them, one after another on one tiny run."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from invclr_jax import main

ROOT = pathlib.Path(__file__).parents[1]
OVERRIDES = {
    "num_steps": 4,
    "batch_size": 16,
    "model.width": 4,
    "transform.size": 8,
    "data.num_train": 96,
    "data.num_test": 48,
    "penalty.num_samples": 3,
    "checkpoint.every_steps": 2,
    "log.every_steps": 2,
    "eval.every_steps": 4,
    "eval.protocol": "invariance",
}


def command(module, *flags):
    """Runs `python -m invclr_jax.MODULE` on one CPU device."""
    environment = os.environ | {"XLA_FLAGS": "", "JAX_PLATFORMS": "cpu"}
    return subprocess.run(
        [sys.executable, "-m", f"invclr_jax.{module}", "--compilation_cache=", *flags],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    overrides = [f"--config.{key}={value}" for key, value in OVERRIDES.items()]
    done = command(
        "train",
        "--config=spirograph_cpu",
        f"--workdir={folder}",
        *overrides,
    )
    assert done.returncode == 0, done.stderr
    assert "step 4/4 (100.0%)" in done.stdout
    assert list((folder / "tensorboard").iterdir()), "TensorBoard events are missing"
    assert "invariance/ratio" in (folder / "metrics.jsonl").read_text()
    return folder


def test_evaluate_writes_json_and_a_table(workdir):
    done = command(
        "evaluate",
        f"--workdir={workdir}",
        "--protocol=untransformed,average",
        "--num_samples=1,2",
        "--batch_size=48",
    )
    assert done.returncode == 0, done.stderr
    assert "not applicable: this data has no untransformed version" in done.stdout
    record = json.loads((workdir / "results" / "step4_seed0.json").read_text())
    metrics = record["protocols"]["average"]["metrics"]
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["m", "b", "sigma", "f_r", "total"] in lines
    shown = next(line for line in lines if line[:1] == ["M=2"])
    assert shown[3] == f"{metrics['probe/ridge/M=2/mse/sigma']:.4g}"
    assert (workdir / "results" / "step4_seed0.png").read_bytes().startswith(b"\x89PNG")
    again = command("evaluate", f"--workdir={workdir}", "--protocol=average", "--num_samples=1,2")
    assert again.returncode == 0, again.stderr
    assert "average (from the file)" in again.stdout


def test_extract_writes_features(workdir, tmp_path):
    images = np.random.default_rng(0).random((5, 8, 8, 3)).astype(np.float32)
    np.savez(tmp_path / "in.npz", images=images, labels=np.arange(5))
    flags = (f"--input={tmp_path / 'in.npz'}", f"--output={tmp_path / 'out.npz'}")
    done = command("extract", f"--workdir={workdir}", *flags)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out.npz") as stored:
        assert stored["images"].shape == (5, 32)
        assert np.isfinite(stored["images"]).all()
        np.testing.assert_array_equal(stored["labels"], np.arange(5))
    assert {path.name for path in tmp_path.iterdir()} == {"in.npz", "out.npz"}


@pytest.mark.parametrize(
    ("module", "flags", "words"),
    [
        ("evaluate", ["--workdir=nowhere"], "holds no checkpoint"),
        ("evaluate", ["--workdir=nowhere", "--protocol=kmn"], "no protocol 'kmn'"),
        (
            "train",
            ["--config=configs/cifar10_cpu.py", "--workdir=unused", "--config.data.path=nowhere"],
            "config.data.path",
        ),
        (
            "train",
            ["--config=spirograph_cpu", "--workdir=unused", "--config.penalty.clip=-1"],
            "config.penalty.clip is -1.0: use a finite number above 0",
        ),
    ],
)
def test_mistakes_end_in_a_sentence(module, flags, words):
    done = command(module, *flags)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (ROOT / "unused").exists()


def invclr(*words):
    """Runs `invclr`, as the console script does."""
    return subprocess.run(
        [sys.executable, "-m", "invclr_jax.main", *words],
        cwd=ROOT,
        env=os.environ | {"XLA_FLAGS": "", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize("name", main.COMMANDS)
def test_help_is_no_error(name):
    done = invclr(name, "--help")
    assert done.returncode == 0, done.stderr
    assert "--" in done.stdout


def test_invclr_tells_its_commands():
    done = invclr("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"invclr {name}" in done.stdout for name in main.COMMANDS)
    done = invclr("trian")
    assert done.returncode == 2
    assert "no command 'trian'" in done.stderr


def test_a_config_is_found_by_name_or_the_names_are_told(tmp_path):
    done = invclr("train", "--config=spirograf", f"--workdir={tmp_path}")
    assert done.returncode == 1
    assert "no config 'spirograf': use one of cifar10, cifar100" in done.stderr


def test_plan_refuses_before_compiling():
    done = command("plan", "--config=spirograph_cpu", "--topology=v9:2x4")
    assert done.returncode == 1
    assert "error: no topology 'v9:2x4': use one such as v5e:2x4" in done.stderr
