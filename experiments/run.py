"""Trains, evaluates, tabulates and plots the paper's experiments and our own.

    python -m experiments.run all --scale=cpu --seeds=3 --workdir=runs --data_path=DIR
    python -m experiments.run --runs=spirograph/none,spirograph/unit-0.01 --seeds=3 --workdir=runs

What is there already is not computed again, and runs that experiments share are trained once.
Seeds come in turn, all runs with the first, then all with the second, so that what is finished is
a whole comparison at any time.
"""

import pathlib
import time
import traceback

from absl import flags

from experiments import runs
from experiments.runner import Stopped, ensure
from invclr_jax import cli
from invclr_jax.evaluation.results import code_version

_SCALE = flags.DEFINE_enum("scale", "cpu", runs.SCALES, "cpu: a size that two cores finish.")
_SEEDS = flags.DEFINE_integer("seeds", 3, "Runs of each kind.", lower_bound=1)
_FIRST_SEED = flags.DEFINE_integer("first_seed", 0, "Number of the first seed.", lower_bound=0)
_RUNS = flags.DEFINE_list("runs", [], "Only train and evaluate these, DATA/NAME,…")
_WORKDIR = flags.DEFINE_string("workdir", "runs", "Folder of the checkpoints.")
_RESULTS = flags.DEFINE_string("results", "experiments/results", "Folder of the records.")
_DATA_PATH = flags.DEFINE_string("data_path", None, "Where CIFAR is, see invclr_jax.data.load.")


def train_all(wanted: list[runs.Run], seeds: range) -> list[str]:
    """Trains and evaluates every run; returns a sentence for each that failed."""
    failed = []
    todo = [(seed, run) for seed in seeds for run in wanted]
    for number, (seed, run) in enumerate(todo, start=1):
        title = f"[{number}/{len(todo)}] {run.scale} {run} seed {seed}"
        print(f"\n{title}", flush=True)
        start = time.perf_counter()
        try:
            workdir, results = pathlib.Path(_WORKDIR.value), pathlib.Path(_RESULTS.value)
            ensure(run, seed, workdir, results, _DATA_PATH.value)
        except Exception as error:
            if isinstance(error, Stopped):
                raise
            traceback.print_exc()
            failed.append(f"{title}: {type(error).__name__}: {error}")
        print(f"{title}: {time.perf_counter() - start:.0f} s", flush=True)
    return failed


def main(names: str = "") -> int:
    """Runs what is asked for; 1 if something failed, 128 + signal if stopped."""
    code_version()  # of now: the tree may change while we run
    wanted = [runs.parse(text, _SCALE.value) for text in _RUNS.value]
    seeds = range(_FIRST_SEED.value, _FIRST_SEED.value + _SEEDS.value)
    try:
        failed = train_all(wanted, seeds)
    except Stopped as stopped:
        print(stopped)
        return 128 + stopped.signal
    for sentence in failed:
        print(f"failed: {sentence}")
    return 1 if failed else 0


if __name__ == "__main__":
    cli.run(main, max_arguments=1)
