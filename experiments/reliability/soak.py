"""A long run with many checkpoints: does it grow?"""

import os
import pathlib
import time

import numpy as np

from experiments.reliability import tiny

WARM_UP = 0.2
"""Share of the time that is left out of the slopes."""


def soak(folder: pathlib.Path, minutes: float = 30.0, every: float = 5.0) -> dict:
    """Trains for so long, looking at memory and open files every few seconds.

    Args:
      folder: to work in.
      minutes: how long, from the first step on.
      every: seconds between two looks.
    """
    job = tiny.start(folder / "soak", num_steps=10_000_000, log__every_steps=30)
    job.wait_until_it_says("images/s")
    begin, seen = time.monotonic(), []
    while job.running() and time.monotonic() - begin < 60 * minutes:
        seen.append((time.monotonic() - begin, *_usage(job.process.pid)))
        time.sleep(every)
    alive = job.running()
    job.process.terminate()
    code = job.code()
    hours, memory, files = np.array(seen).T / np.array([[3600], [1], [1]])
    late = hours >= WARM_UP * hours[-1]
    steps = tiny.whole(folder / "soak")[-1]
    survived = int(alive and code == 143)
    return {
        "tried": 1,
        "survived": survived,
        "lost": 1 - survived,
        "minutes": round(hours[-1] * 60, 1),
        "steps": steps,
        "checkpoints": steps // tiny.EVERY,
        "looks": len(seen),
        "memory_mb_first_and_last": [round(memory[late][0], 1), round(memory[-1], 1)],
        "memory_mb_per_hour": round(float(np.polyfit(hours[late], memory[late], 1)[0]), 2),
        "open_files_first_and_last": [int(files[late][0]), int(files[-1])],
        "open_files_largest": int(files.max()),
        "open_files_per_hour": round(float(np.polyfit(hours[late], files[late], 1)[0]), 2),
    }


def _usage(process: int) -> tuple[float, int]:
    """Resident memory in MB and the number of open files."""
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return kilobytes / 1024, len(os.listdir(f"/proc/{process}/fd"))
