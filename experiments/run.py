"""Trains, evaluates, tabulates and plots the paper's experiments and our own.

    python -m experiments.run all --scale=cpu --seeds=3 --workdir=runs --data_path=DIR
    python -m experiments.run fig2,table1 --scale=paper --dry_run --devices=8
    python -m experiments.run --runs=spirograph/none,spirograph/unit-0.01 --seeds=3 --workdir=runs

What is there already is not computed again, and runs that experiments share are trained once.
Seeds come in turn, all runs with the first, then all with the second, so that what is finished is
a whole comparison at any time. `--seeds=0` only writes tables and plots again.
"""

import pathlib
import time
import traceback
from collections.abc import Sequence

from absl import flags

from experiments import records, runs
from experiments.experiment import write
from experiments.figures import EXPERIMENTS
from experiments.plan import describe
from experiments.runner import Stopped, ensure
from invclr_jax import cli
from invclr_jax.evaluation.results import code_version

_SCALE = flags.DEFINE_enum("scale", "cpu", runs.SCALES, "cpu: a size that two cores finish.")
_SEEDS = flags.DEFINE_integer("seeds", 3, "Runs of each kind.", lower_bound=0)
_FIRST_SEED = flags.DEFINE_integer("first_seed", 0, "Number of the first seed.", lower_bound=0)
_RUNS = flags.DEFINE_list("runs", [], "Only train and evaluate these, DATA/NAME,…")
_WORKDIR = flags.DEFINE_string("workdir", "runs", "Folder of the checkpoints.")
_RESULTS = flags.DEFINE_string("results", "experiments/results", "Folder of records and tables.")
_DATA_PATH = flags.DEFINE_string("data_path", None, "Where CIFAR is, see invclr_jax.data.load.")
_DRY_RUN = flags.DEFINE_bool("dry_run", False, "Print the plan and its cost, and train nothing.")
_DEVICES = flags.DEFINE_integer("devices", 1, "Devices that the plan counts on.", lower_bound=1)


def experiment_names(text: str) -> list[str]:
    """Checks names of experiments; `all` stands for every one of them."""
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


def train_all(wanted: Sequence[runs.Run], seeds: range) -> list[str]:
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
        except Stopped:
            raise
        except Exception as error:
            traceback.print_exc()
            failed.append(f"{title}: {type(error).__name__}: {error}")
        print(f"{title}: {time.perf_counter() - start:.0f} s", flush=True)
    return failed


def write_all(names: Sequence[str]) -> None:
    """Writes tables and plots from whatever records there are."""
    results = pathlib.Path(_RESULTS.value)
    found = records.load(results, _SCALE.value)
    for name in names:
        made = write(EXPERIMENTS[name], name, found, results / _SCALE.value)
        print(f"{name}: {'written' if made else 'nothing measured yet'}")


def main(names: str = "") -> int:
    """Runs what is asked for; 1 if something failed, 128 + signal if stopped."""
    code_version()  # of now: the tree may change while we run
    experiments = experiment_names(names)
    wanted = wanted_runs(experiments, _RUNS.value, _SCALE.value)
    if not wanted:
        raise ValueError(f"nothing to do: name an experiment ({', '.join(EXPERIMENTS)}) or --runs")
    if _DRY_RUN.value:
        found = records.load(pathlib.Path(_RESULTS.value), _SCALE.value)
        print(describe(wanted, found, _SEEDS.value, _DEVICES.value))
        return 0
    try:
        seeds = range(_FIRST_SEED.value, _FIRST_SEED.value + _SEEDS.value)
        failed = train_all(wanted, seeds)
    except Stopped as stopped:
        print(stopped)
        return 128 + stopped.signal
    write_all(experiments)
    for sentence in failed:
        print(f"failed: {sentence}")
    return 1 if failed else 0


if __name__ == "__main__":
    cli.run(main, max_arguments=1)
