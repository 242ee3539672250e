"""Several processes over `jax.distributed` on the loopback give what one process gives."""

import os
import pathlib
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest

from invclr_jax import checkpoint
from invclr_jax.training import restore
from invclr_jax.training.step import create_state
from tests.training.small import small_config, small_recipe

ROOT = pathlib.Path(__file__).parents[2]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(module, arguments, count, devices):
    """Starts the processes of a job, each with so many virtual devices; returns their outputs."""
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        # Compiling matters here, not running.
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices} "
        "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
    }
    port = str(free_port())
    jobs = [
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments, str(i), str(count), port],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for i in range(count)
    ]
    outputs = [job.communicate(timeout=900)[0] for job in jobs]
    for job, output in zip(jobs, outputs, strict=True):
        assert job.returncode == 0, output
    return outputs


def launch(workdir, count, devices, method):
    return start("tests.training.worker", [workdir, method], count, devices)


def final_state(workdir, method):
    with jax.enable_x64(True):
        config = small_config(method=method, **{"model.dtype": "float64"})
        template = restore.parts(jax.eval_shape(lambda: create_state(small_recipe(config))))
        return checkpoint.Checkpoints(workdir).restore(6, template)


@pytest.mark.parametrize("method", ["simclr", "moco"])
def test_two_processes_equal_one(tmp_path, method):
    launch(str(tmp_path / "one"), 1, 4, method)
    outputs = launch(str(tmp_path / "two"), 2, 2, method)
    assert "process 1 of 2 finished at step 6" in outputs[1]
    one, two = (final_state(tmp_path / name, method) for name in ("one", "two"))
    for mine, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=1e-9, atol=1e-11)
    lines = (tmp_path / "two" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == 6, "only the first process may write metrics"
