"""Peak memory of the penalised step, ours beside PyTorch's, each in a process of its own.

On CPUs: by how much the process's resident memory at its highest (VmHWM, where Linux lets us reset
it, else `ru_maxrss`) exceeds what it was after imports and initialisation (parameters, optimiser,
data), over two steps. Our program comes from the compilation cache that an earlier process filled,
so that the compiler's own memory is not counted; reading it is. On GPUs and TPUs: the allocator's
own peak. The record also has XLA's account of the compiled program.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import jax

from benchmarks.measure import Row, has_torch
from benchmarks.ours import Run, setting
from benchmarks.step import make_peer

WIDTH, BATCH, STEPS = 64, 64, 2
SIDES = ("contiguous", "channels_last")
MB = 1e6


def rows(repeats: int) -> list[Row]:
    """Ours beside PyTorch in the memory format that takes less. One process each is enough."""
    del repeats
    with tempfile.TemporaryDirectory() as cache:
        _in_process("ours", cache)
        ours = _in_process("ours", cache)
    theirs = {side: _in_process(side) for side in SIDES} if has_torch() else {}
    peaks = {side: found["bytes"] / MB for side, found in theirs.items()}
    name = min(peaks, key=lambda side: peaks[side], default="")
    return [
        Row(
            f"peak memory of the penalised step, ResNet18 width {WIDTH}, batch {BATCH}",
            ours["bytes"] / MB,
            peaks.get(name),
            f"PyTorch, {name}",
            "≥ 1.0×",
            unit="MB",
            details={"ours": ours, "theirs": theirs},
        )
    ]


def _in_process(side: str, cache: str = "") -> dict:
    """What a fresh process measures for one side."""
    command = [sys.executable, "-m", "benchmarks.memory", side, str(WIDTH), str(BATCH), cache]
    root = pathlib.Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def _measure(side: str, width: int, batch: int, cache: str) -> dict:
    if cache:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    run = Run(setting(model__width=width, batch_size=batch))
    step = run.step if side == "ours" else make_peer(run, channels_last=side != SIDES[0]).step
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
    """Forgets earlier peaks, as far as possible; bytes in use now."""
    if _on_accelerator():
        return 0
    if os.path.exists("/proc/self/clear_refs"):
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()
    return _peak("")


def _peak(side: str) -> int:
    """Bytes in use at the highest since `_start`."""
    if _on_accelerator():
        return _accelerator_peak(side)
    status = pathlib.Path("/proc/self/status")
    if not status.exists():  # macOS counts in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def _on_accelerator() -> bool:
    return jax.default_backend() != "cpu"


def _accelerator_peak(side: str) -> int:
    if side == "ours":
        return (jax.local_devices()[0].memory_stats() or {})["peak_bytes_in_use"]
    import torch

    return torch.cuda.max_memory_allocated()


if __name__ == "__main__":
    side, width, batch, cache = sys.argv[1:]
    print(json.dumps(_measure(side, int(width), int(batch), cache)))
