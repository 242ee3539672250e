"""Peak memory of the penalised step, ours and PyTorch's, each in a process of its own.

On CPUs: by how much the process's peak resident memory (VmHWM) exceeds, over two steps, what it was
after imports, initialisation and a first step, once freed memory had been given back. So neither
the libraries nor compilation count, nor parameters and optimiser, which are the same on both sides.
On GPUs and TPUs: the allocator's own peak. The record also has XLA's account of the compiled
program.
"""

import ctypes
import gc
import json
import pathlib
import statistics
import subprocess
import sys

import jax

from benchmarks.measure import Row, has_torch
from benchmarks.ours import Run, setting
from benchmarks.step import make_peer
from invclr_jax.cpu import keep_freed_memory

WIDTH, BATCH, STEPS = 64, 64, 2
SIDES = ("contiguous", "channels_last")
PROCESSES = 3
"""XLA may free a step's memory only after reporting that the step is done: one process in five was
seen to hold that of two steps."""
MB = 1e6
STATUS = pathlib.Path("/proc/self/status")


def rows(repeats: int) -> list[Row]:
    """Ours against PyTorch in the memory format that takes less: medians over processes."""
    sides = ("ours", *SIDES) if has_torch() else ("ours",)
    found = {side: [_in_process(side) for _ in range(min(repeats, PROCESSES))] for side in sides}
    peaks = {
        side: statistics.median(each["bytes"] for each in processes) / MB
        for side, processes in found.items()
    }
    ours = peaks.pop("ours")
    name = min(peaks, key=lambda side: peaks[side], default="")
    return [
        Row(
            f"peak memory of the penalised step, ResNet18 width {WIDTH}, batch {BATCH}",
            ours,
            peaks.get(name),
            f"PyTorch, {name}",
            "≥ 1.0×",
            unit="MB",
            details=found,
        )
    ]


def _in_process(side: str) -> dict:
    """What a fresh process measures for one side."""
    command = [sys.executable, "-m", "benchmarks.memory", side, str(WIDTH), str(BATCH)]
    root = pathlib.Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def _measure(side: str, width: int, batch: int) -> dict:
    keep_freed_memory()  # as our commands and `benchmarks.run` do
    run = Run(setting(model__width=width, batch_size=batch))
    step = run.step if side == "ours" else make_peer(run, channels_last=side != SIDES[0]).step
    jax.block_until_ready(step(penalised=True))
    before = _start()
    for _ in range(STEPS):
        jax.block_until_ready(step(penalised=True))
    peak = _peak(side)
    found = {"bytes": peak - before, "before": before, "peak": peak}
    return found | {"xla": _xla(run)} if side == "ours" else found


def _xla(run: Run) -> dict[str, int]:
    """XLA's account of the penalised program, in bytes."""
    found = run.compiled(penalised=True).memory_analysis()
    names = ("temp", "argument", "output", "alias", "generated_code")
    return {name: getattr(found, f"{name}_size_in_bytes") for name in names}


# What the process or its accelerator says ------------------------------------------------------


def _start() -> int:
    """Gives freed memory back and resets the peak; returns the bytes in use now."""
    if _on_accelerator() or not STATUS.exists():
        return 0
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak(side: str) -> int:
    """Peak of the bytes in use since `_start`."""
    if _on_accelerator():
        return _accelerator_peak(side)
    if not STATUS.exists():
        raise RuntimeError("peak memory on CPUs is read from /proc, which only Linux has")
    return _status("VmHWM")


def _status(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def _on_accelerator() -> bool:
    return jax.default_backend() != "cpu"


def _accelerator_peak(side: str) -> int:
    if side == "ours":
        return (jax.local_devices()[0].memory_stats() or {})["peak_bytes_in_use"]
    import torch

    return torch.cuda.max_memory_allocated()


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
