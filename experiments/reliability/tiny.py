"""Training processes small enough to be killed many times."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

import jax
import numpy as np
import orbax.checkpoint as ocp

ROOT = pathlib.Path(__file__).parents[2]
SETTING: dict[str, str | int] = {
    "model.name": "resnet10",
    "model.width": 4,
    "model.conv": "xla",
    "transform.size": 8,
    "data.num_train": 256,
    "data.num_test": 64,
    "batch_size": 16,
    "num_steps": 40,
    "checkpoint.every_steps": (EVERY := 3),
}
CORES = ",".join(map(str, sorted(os.sched_getaffinity(0))))
"""The cores that this program was started on; their number affects the bits of sums."""

PATIENCE = 3600
"""Seconds after which a process counts as hung."""

Arrays = dict[str, np.ndarray]


@dataclasses.dataclass
class Job:
    """A running training process and its output so far."""

    process: subprocess.Popen
    log: pathlib.Path

    def said(self) -> str:
        """All of its output."""
        return self.log.read_text(errors="replace")

    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def wait_until_it_says(self, words: str) -> None:
        """Returns when the words are in its output, or when it has ended."""
        end = time.monotonic() + PATIENCE
        while self.running() and words not in self.said() and time.monotonic() < end:
            time.sleep(0.02)

    def code(self, timeout: float = PATIENCE) -> int:
        """Its exit code; a process that is still running after `timeout` seconds is killed."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


def start(
    workdir: pathlib.Path,
    *,
    devices: int = 1,
    float64: bool = False,
    before: Sequence[str] = (),
    flags: Sequence[str] = (),
    **overrides,
) -> Job:
    """Starts (or resumes) a tiny run.

    Args:
      workdir: of the run; its output goes to a file beside it, its compiled programs into the
        folder `cache` beside it.
      devices: virtual CPU devices.
      float64: whether to train in double precision.
      before: words to put before the command, such as `prlimit`.
      flags: of a process of a job of several.
      **overrides: config keys, `__` for a dot.
    """
    dtype = {"model.dtype": "float64"} if float64 else {}
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    config = [f"--config.{key}={value}" for key, value in (SETTING | dtype | given).items()]
    command = [
        "taskset",
        "--cpu-list",
        CORES,
        *before,
        sys.executable,
        "-m",
        "invclr_jax.train",
        f"--workdir={workdir}",
    ]
    command += ["--config=configs/spirograph_cpu.py", *config, *flags]
    command += [f"--compilation_cache={workdir.parent / 'cache'}"]
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": str(int(float64)),
        # Starting counts here, not speed.
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices} "
        "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
    }
    if flags:
        environment["JAX_CPU_COLLECTIVES_IMPLEMENTATION"] = "gloo"
    number = len(list(workdir.parent.glob(f"{workdir.name}.*.log")))
    log = workdir.parent / f"{workdir.name}.{number}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    return Job(process, log)


def finish(workdir: pathlib.Path, **options) -> Arrays:
    """Trains to the end and returns the final state; RuntimeError if that fails."""
    job = start(workdir, **options)
    if job.code() != 0:
        raise RuntimeError(f"a run without a fault ended in an error: {job.said()[-2000:]}")
    return final(workdir)


def ends_like(expected: Mapping[str, np.ndarray], workdir: pathlib.Path, **options) -> bool:
    """Resumes to the end; whether that succeeds and gives the expected bits."""
    try:
        return same_bits(finish(workdir, **options), expected)
    except RuntimeError as error:
        print(error, flush=True)
        return False


def whole(workdir: pathlib.Path) -> list[int]:
    """Steps of the checkpoints that a run lists as complete."""
    return sorted(int(name) for name in _names(workdir / "checkpoints") if name.isdigit())


def torn(workdir: pathlib.Path) -> list[str]:
    """Names of checkpoints that are not finished."""
    return [name for name in _names(workdir / "checkpoints") if not name.isdigit()]


def _names(folder: pathlib.Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


def final(workdir: pathlib.Path) -> Arrays:
    """Every array of the newest checkpoint, by name."""
    newest = workdir / "checkpoints" / str(whole(workdir)[-1])
    reader = ocp.PyTreeCheckpointer()
    arrays = {}
    for part in ("encoder", "training"):
        for path, leaf in jax.tree_util.tree_leaves_with_path(reader.restore(newest / part)):
            arrays[part + jax.tree_util.keystr(path)] = np.asarray(leaf)
    return arrays


def rewound(workdir: pathlib.Path, place: pathlib.Path, step: int) -> pathlib.Path:
    """A copy of a run as it was at a checkpoint: later ones are left out."""
    shutil.copytree(workdir, place, dirs_exist_ok=True)
    for later in (s for s in whole(place) if s > step):
        shutil.rmtree(place / "checkpoints" / str(later))
    return place


def same_bits(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    """Whether two states are equal to the last bit."""
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and one[name].tobytes() == other[name].tobytes()
        for name in one
    )


def distance(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> float:
    """Largest difference, relative to the largest entry of the array it is in."""
    return max(
        float(np.abs(one[name] - other[name]).max() / max(np.abs(one[name]).max(), 1e-300))
        for name in one
        if one[name].size
    )
