"""Jobs of several processes on one machine, whole and with one of them killed."""

import pathlib
import signal
import socket
import subprocess
import time

import numpy as np

from experiments.reliability import tiny
from experiments.reliability.devices import TOLERANCE

STEPS, DEVICES = 20, 4
BOUND = 180
"""Seconds within which the others must end after one was killed."""


def processes(
    folder: pathlib.Path, victims: tuple[tuple[int, int], ...] = ((2, 1), (2, 0), (4, 2))
) -> dict:
    """Four devices in one, two and four processes; then with one process killed or stopped.

    Args:
      folder: to work in.
      victims: (processes of the job, which one to kill).
    """
    one = tiny.finish(folder / "one_process", devices=DEVICES, float64=True, num_steps=STEPS)
    differences = {
        str(count): _ends_like(one, folder / f"job{count}", count)
        for count in sorted({count for count, _ in victims})
    }
    rng = np.random.default_rng(0)
    kills = [
        _kill_one(folder / f"job{count}_without{victim}", count, victim, one, rng)
        for count, victim in victims
    ]
    stopped = _stop_one(folder / "stopped", victims[0][0], one)
    good = [d < TOLERANCE for d in differences.values()]
    good += [kill["ended_with_an_error"] and kill["difference"] < TOLERANCE for kill in kills]
    good += [set(stopped["codes"]) == {143} and stopped["difference"] < TOLERANCE]
    return {
        "tried": len(good),
        "survived": sum(good),
        "lost": len(good) - sum(good),
        "difference_from_one_process": differences,
        "killed": kills,
        "stopped": stopped,
    }


def _launch(workdir: pathlib.Path, count: int) -> list[tiny.Job]:
    """Starts the processes of a job, which share the devices."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    job = [f"--coordinator=127.0.0.1:{port}", f"--num_processes={count}"]
    options: dict = {"devices": DEVICES // count, "float64": True, "num_steps": STEPS}
    return [tiny.start(workdir, flags=[*job, f"--process_id={i}"], **options) for i in range(count)]


def _ends_like(one: tiny.Arrays, workdir: pathlib.Path, count: int) -> float:
    """Trains to the end; the largest difference from one process, infinity if a process fails."""
    codes = [job.code() for job in _launch(workdir, count)]
    return tiny.distance(one, tiny.final(workdir)) if not any(codes) else float("inf")


def _kill_one(
    workdir: pathlib.Path, count: int, victim: int, one: tiny.Arrays, rng: np.random.Generator
) -> dict:
    jobs = _launch(workdir, count)
    jobs[0].wait_until_it_says("images/s")
    time.sleep(rng.uniform(0, 1))
    jobs[victim].process.kill()
    begin = time.monotonic()
    jobs[victim].code()
    others = [job for i, job in enumerate(jobs) if i != victim]
    codes = [_code(job) for job in others]
    seconds = round(time.monotonic() - begin, 1)
    return {
        "processes": count,
        "killed": victim,
        "ended_with_an_error": all(code not in (0, None) for code in codes),
        "seconds_until_all_had_ended": seconds,
        "difference": _ends_like(one, workdir, count),
    }


def _code(job: tiny.Job) -> int | None:
    try:
        return job.code(BOUND)
    except subprocess.TimeoutExpired:
        return None


def _stop_one(workdir: pathlib.Path, count: int, one: tiny.Arrays) -> dict:
    """SIGTERM to one process: all save the same step and exit with its code."""
    jobs = _launch(workdir, count)
    jobs[0].wait_until_it_says("images/s")
    jobs[-1].process.send_signal(signal.SIGTERM)
    codes = [_code(job) for job in jobs]
    return {"codes": codes, "difference": _ends_like(one, workdir, count)}
