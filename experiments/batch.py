"""Many runs one after another, and the tables and plots of their results."""

import dataclasses
import pathlib
import time
import traceback
from collections.abc import Sequence

import jax

from experiments import records, runs
from experiments.experiment import write
from experiments.figures import EXPERIMENTS
from experiments.runner import Stopped, ensure, train_only


@dataclasses.dataclass(frozen=True)
class Places:
    """Where things are.

    Attributes:
      workdir: root of the checkpoints.
      results: root of records, tables and plots.
      data_path: of CIFAR.
    """

    workdir: pathlib.Path
    results: pathlib.Path
    data_path: str | None = None


def experiment_names(text: str) -> list[str]:
    """Checks names of experiments; `all` stands for every experiment."""
    names = list(EXPERIMENTS) if text == "all" else [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(
            f"no experiment {', '.join(map(repr, unknown))}: use all, or some of "
            f"{', '.join(EXPERIMENTS)}"
        )
    return names


def wanted_runs(names: Sequence[str], texts: Sequence[str], scale: str) -> list[runs.Run]:
    """The runs of some experiments and those named themselves, each once."""
    needed = [text for name in names for text in EXPERIMENTS[name].runs(scale)]
    return [runs.parse(text, scale) for text in dict.fromkeys([*texts, *needed])]


def train_all(
    wanted: Sequence[runs.Run], seeds: range, places: Places, *, evaluate: bool = True
) -> list[str]:
    """Trains and evaluates every run, seed by seed.

    Args:
      wanted: the runs.
      seeds: of each.
      places: where things are.
      evaluate: whether to evaluate and to keep records.

    Returns:
      A sentence for each run that failed; a failure does not stop the others.
    """
    failed = []
    todo = [(seed, run) for seed in seeds for run in wanted]
    for number, (seed, run) in enumerate(todo, start=1):
        title = f"[{number}/{len(todo)}] {run.scale} {run} seed {seed}"
        print(f"\n{title}", flush=True)
        start = time.perf_counter()
        try:
            if evaluate:
                ensure(run, seed, places.workdir, places.results, places.data_path)
            else:
                train_only(run, seed, places.workdir, places.data_path)
        except Stopped:
            raise
        except Exception as error:
            traceback.print_exc()
            failed.append(f"{title}: {type(error).__name__}: {error}")
        jax.clear_caches()  # a process can map only so many programs: after ten runs LLVM gives up
        print(f"{title}: {time.perf_counter() - start:.0f} s", flush=True)
    return failed


def write_all(names: Sequence[str], scale: str, results: pathlib.Path) -> None:
    """Writes tables and plots of experiments from the existing records."""
    found = records.load(results, scale)
    for name in names:
        made = write(EXPERIMENTS[name], name, found, results / scale)
        print(f"{name}: {'written' if made else 'nothing measured yet'}")
