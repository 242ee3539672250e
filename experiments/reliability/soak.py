"""A long run with many checkpoints: does it grow?"""

import os
import pathlib
import time

import numpy as np

from experiments.reliability import tiny

WARM_UP = 0.2
"""Share of the time that is left out of the slopes."""


NEVER = 10_000_000
PLAIN_SHARE = 1 / 6
"""Length of the second run, which writes no checkpoints, to see what grows with what."""


def soak(folder: pathlib.Path, minutes: float = 30.0, every: float = 5.0) -> dict:
    """Trains for a while, sampling memory and open files every few seconds.

    Args:
      folder: to work in.
      minutes: how long, from the first step on.
      every: seconds between two samples.
    """
    hours, memory, files, alive = _watch(folder / "soak", minutes, every)
    plain = _watch(folder / "plain", minutes * PLAIN_SHARE, every, checkpoint__every_steps=NEVER)
    steps, plain_steps = (tiny.whole(folder / name)[-1] for name in ("soak", "plain"))
    late, survived = _late(hours), int(alive and plain[3])
    slope = _slope(hours, memory)
    checkpoints = steps // tiny.EVERY
    return {
        "tried": 1,
        "survived": survived,
        "lost": 1 - survived,
        "minutes": round(hours[-1] * 60, 1),
        "steps": steps,
        "checkpoints": checkpoints,
        "looks": len(hours),
        "memory_mb_first_and_last": [round(memory[late][0], 1), round(memory[-1], 1)],
        "memory_mb_per_hour": round(slope, 2),
        "memory_kb_per_checkpoint": round(1e3 * slope * hours[-1] / checkpoints, 2),
        "open_files_first_and_last": [int(files[late][0]), int(files[-1])],
        "open_files_largest": int(files.max()),
        "open_files_per_hour": round(_slope(hours, files), 2),
        "without_checkpoints": {
            "minutes": round(plain[0][-1] * 60, 1),
            "steps": plain_steps,
            "memory_mb_per_hour": round(_slope(plain[0], plain[1]), 2),
        },
    }


def _watch(workdir: pathlib.Path, minutes: float, every: float, **overrides):
    """Hours, memory in MB and open files at each sample; whether it ran and exited as it should."""
    job = tiny.start(workdir, num_steps=NEVER, log__every_steps=30, **overrides)
    job.wait_until_it_says("images/s")
    begin, seen = time.monotonic(), []
    while job.running() and time.monotonic() - begin < 60 * minutes:
        seen.append((time.monotonic() - begin, *_usage(job.process.pid)))
        time.sleep(every)
    alive = job.running()
    job.process.terminate()
    hours, memory, files = np.array(seen).T / np.array([[3600], [1], [1]])
    return hours, memory, files, alive and job.code() == 143


def _late(hours: np.ndarray) -> np.ndarray:
    return hours >= WARM_UP * hours[-1]


def _slope(hours: np.ndarray, values: np.ndarray) -> float:
    """Growth per hour after the warm-up."""
    late = _late(hours)
    return float(np.polyfit(hours[late], values[late], 1)[0])


def _usage(process: int) -> tuple[float, int]:
    """Its own memory in MB, including what was swapped out, and the number of open files."""
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    kilobytes = (int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "VmSwap")))
    return sum(kilobytes) / 1024, len(os.listdir(f"/proc/{process}/fd"))
