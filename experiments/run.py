"""Trains, evaluates, tabulates and plots the paper's experiments and our own.

    python -m experiments.run all --scale=cpu --seeds=3 --workdir=runs --data_path=DIR
    python -m experiments.run fig2,table1 --scale=paper --dry_run --devices=8
    python -m experiments.run --runs=spirograph/none,spirograph/unit-0.01 --seeds=3 --workdir=runs

Finished work is not computed again, and runs that experiments share are trained once. Seeds are
done in turn, all runs with the first, then all with the second, so that what is finished is a whole
comparison at any time. `--seeds=0` only writes tables and plots again.
"""

import pathlib

from absl import flags

from experiments import batch, records, runs
from experiments.figures import EXPERIMENTS
from experiments.plan import describe
from experiments.runner import Stopped
from invclr_jax import cli
from invclr_jax.evaluation.results import code_version

_SCALE = flags.DEFINE_enum("scale", "cpu", runs.SCALES, "cpu: a size that two cores can finish.")
_SEEDS = flags.DEFINE_integer("seeds", 3, "Runs of each kind.", lower_bound=0)
_FIRST_SEED = flags.DEFINE_integer("first_seed", 0, "Number of the first seed.", lower_bound=0)
_RUNS = flags.DEFINE_list("runs", [], "Only train and evaluate these, DATA/NAME,…")
_WORKDIR = flags.DEFINE_string("workdir", "runs", "Folder of the checkpoints.")
_RESULTS = flags.DEFINE_string("results", "experiments/results", "Folder of records and tables.")
_DATA_PATH = flags.DEFINE_string("data_path", None, "Where CIFAR is, see invclr_jax.data.load.")
_EVALUATE = flags.DEFINE_bool(
    "evaluate", True, "Whether to evaluate; if not, experiments.checkpoints can measure runs."
)
_DRY_RUN = flags.DEFINE_bool("dry_run", False, "Print the plan and its cost, and train nothing.")
_DEVICES = flags.DEFINE_integer("devices", 1, "Devices that the plan assumes.", lower_bound=1)


def main(names: str = "") -> int:
    """Runs what is asked for; 1 if something failed, 128 + signal if stopped."""
    code_version()  # as of now: the tree may change while we run
    scale, results = _SCALE.value, pathlib.Path(_RESULTS.value)
    experiments = batch.experiment_names(names)
    wanted = batch.wanted_runs(experiments, _RUNS.value, scale)
    if not wanted:
        raise ValueError(f"nothing to do: name an experiment ({', '.join(EXPERIMENTS)}) or --runs")
    if _DRY_RUN.value:
        print(describe(wanted, records.load(results, scale), _SEEDS.value, _DEVICES.value))
        return 0
    try:
        seeds = range(_FIRST_SEED.value, _FIRST_SEED.value + _SEEDS.value)
        places = batch.Places(pathlib.Path(_WORKDIR.value), results, _DATA_PATH.value)
        failed = batch.train_all(wanted, seeds, places, evaluate=_EVALUATE.value)
    except Stopped as stopped:
        print(stopped)
        return 128 + stopped.signal
    batch.write_all(experiments, scale, results)
    for sentence in failed:
        print(f"failed: {sentence}")
    return 1 if failed else 0


if __name__ == "__main__":
    cli.run(main, max_arguments=1)
