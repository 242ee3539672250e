"""From the command to its first finished step, with an empty compilation cache and a full one."""

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.measure import Row
from benchmarks.ours import ESTIMATOR

WIDTH, BATCH = 64, 64
WITHOUT_TORCH = """
import runpy, sys
sys.modules["torch"] = None
runpy.run_module("invclr_jax.train", run_name="__main__", alter_sys=True)
"""
"""`python -m invclr_jax.train` as in a default installation: tensorboardX imports PyTorch, the
benchmarks' reference, whenever it finds it."""

COLD = 3
"""Limit on cold starts: they take longest and vary least."""


def rows(repeats: int) -> list[Row]:
    """Two rows: the first start on a machine, and later ones."""
    with tempfile.TemporaryDirectory() as folder:
        cold = [_start(folder, cache=f"cold{turn}") for turn in range(min(repeats, COLD))]
        warm = [_start(folder, cache="cold0") for _ in range(repeats)]
    work = f"command to first step, ResNet18 width {WIDTH}, batch {BATCH}, penalised"
    return [
        _row(f"{work}, compiling", cold, "≤ 15 s"),
        _row(f"{work}, second start (compilation cache)", warm, "≤ 5 s"),
    ]


def _row(work: str, seconds: list[float], target: str) -> Row:
    return Row(work, statistics.median(seconds), target=target, details={"seconds": seconds})


def _start(folder: str, cache: str) -> float:
    """Seconds from starting the process to its line about step 1."""
    with tempfile.TemporaryDirectory(dir=folder) as workdir:
        command = [
            *(sys.executable, "-c", WITHOUT_TORCH, "--config=spirograph"),
            *(f"--config.model.width={WIDTH}", f"--config.batch_size={BATCH}"),
            *(f"--config.penalty.estimator={ESTIMATOR}", "--config.num_steps=1"),
            *(f"--workdir={workdir}/run", f"--compilation_cache={folder}/{cache}"),
        ]
        root = pathlib.Path(__file__).resolve().parents[1]
        start = time.perf_counter()
        # Errors go the same way, so that the command sees no terminal and prints lines, not a bar.
        with subprocess.Popen(
            command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            lines = [(time.perf_counter() - start, line) for line in process.stdout or ()]
        for seconds, line in lines:
            if line.startswith("step 1/1"):
                return seconds
        raise RuntimeError(f"{' '.join(command)} made no step:\n{''.join(t for _, t in lines)}")
