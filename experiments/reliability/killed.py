"""Runs that are killed or asked to stop at random moments, and runs that are not."""

import json
import pathlib
import shutil
import signal
import time
from collections.abc import Callable

import numpy as np

from experiments.reliability import tiny

STEPS = 200


def killed(folder: pathlib.Path, kills: int = 20, seed: int = 0) -> dict:
    """SIGKILL at random moments of starting, stepping and checkpointing, then one more start.

    A run that ends before its next kill is compared and a new one started, until there have been
    enough kills. Each start must resume from the newest complete checkpoint.
    """
    rng, workdir = np.random.default_rng(seed), folder / "killed"
    expected = tiny.finish(folder / "undisturbed", num_steps=STEPS)
    figures = {"tried": 0, "survived": 0, "lost": 0, "while_checkpointing": 0, "wrong_resumes": 0}
    at_stake = 0
    while figures["tried"] < kills:
        moment = MOMENTS[figures["tried"] % len(MOMENTS)]
        newest = tiny.whole(workdir)[-1:]
        job = tiny.start(workdir, num_steps=STEPS)
        moment(job, workdir, rng)
        hit = job.running()
        job.process.kill()
        job.code()
        figures["tried"] += hit
        at_stake += hit
        # What an earlier kill left is gone by the first step.
        figures["while_checkpointing"] += hit and _stepped(job) and bool(tiny.torn(workdir))
        figures["wrong_resumes"] += not _resumed(job, newest)
        if not hit or figures["tried"] == kills:
            kept = tiny.ends_like(expected, workdir, num_steps=STEPS)
            figures["survived" if kept else "lost"] += at_stake
            figures["left_unfinished"] = len(tiny.torn(workdir))
            shutil.rmtree(workdir)
            at_stake = 0
    return figures


def _resumed(job: tiny.Job, newest: list[int]) -> bool:
    """Whether a start, if it got that far, resumed from the newest complete checkpoint."""
    first = f"resuming from step {newest[0]}\n" if newest else "step 3/"
    return first in job.said() or not _stepped(job)


def _stepped(job: tiny.Job) -> bool:
    return "images/s" in job.said()


def _starting(job: tiny.Job, workdir: pathlib.Path, rng: np.random.Generator) -> None:
    time.sleep(rng.uniform(0, 8))


def _stepping(job: tiny.Job, workdir: pathlib.Path, rng: np.random.Generator) -> None:
    _wait_for_checkpoints(job, workdir, int(rng.integers(1, 5)))
    time.sleep(rng.uniform(0, 0.5))


def _checkpointing(job: tiny.Job, workdir: pathlib.Path, rng: np.random.Generator) -> None:
    _wait_for_checkpoints(job, workdir, int(rng.integers(0, 5)))
    while job.running() and not tiny.torn(workdir):
        time.sleep(0.0005)
    time.sleep(rng.uniform(0, 0.02))


def _wait_for_checkpoints(job: tiny.Job, workdir: pathlib.Path, count: int) -> None:
    """Returns when a start has saved this many checkpoints, or has ended."""
    first = max(tiny.whole(workdir), default=0)
    job.wait_until_it_says("images/s")
    while job.running() and max(tiny.whole(workdir), default=0) < first + tiny.EVERY * count:
        time.sleep(0.0005)


MOMENTS: tuple[Callable, ...] = (_checkpointing, _stepping, _checkpointing, _stepping, _starting)


def preempted(folder: pathlib.Path, times: int = 5, seed: int = 0) -> dict:
    """SIGTERM at random steps: the run saves, exits with code 143, and resumes to the same end."""
    rng = np.random.default_rng(seed)
    expected = tiny.finish(folder / "undisturbed", num_steps=STEPS)
    seconds, survived = [], 0
    for i in range(times):
        workdir = folder / f"preempted{i}"
        job = tiny.start(workdir, num_steps=STEPS)
        _stepping(job, workdir, rng)
        begin = time.monotonic()
        job.process.send_signal(signal.SIGTERM)
        code = job.code()
        seconds.append(round(time.monotonic() - begin, 2))
        saved = f"stopped by signal 15; step {tiny.whole(workdir)[-1]} is saved"
        clean = code == 128 + signal.SIGTERM and saved in job.said()
        survived += clean and tiny.ends_like(expected, workdir, num_steps=STEPS)
    return {
        "tried": times,
        "survived": survived,
        "lost": times - survived,
        "slowest_seconds_from_signal_to_exit": max(seconds),
    }


def determinism(folder: pathlib.Path, times: int = 2) -> dict:
    """The same seed again: the same final bits, the same metrics."""
    expected = tiny.finish(folder / "undisturbed", num_steps=STEPS)
    metrics = _metrics(folder / "undisturbed")
    survived = 0
    for i in range(times):
        again = folder / f"again{i}"
        same = tiny.ends_like(expected, again, num_steps=STEPS)
        survived += same and _metrics(again) == metrics
    return {"tried": times, "survived": survived, "lost": times - survived}


def _metrics(workdir: pathlib.Path) -> list[dict]:
    """Logged metrics without the speed."""
    lines = (workdir / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [{k: v for k, v in record.items() if k != "images_per_second"} for record in records]
