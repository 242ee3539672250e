"""What a set of runs would cost, before anything is trained.

The estimate scales measured times by the encoder's multiplications and by the penalty's step ratio:

* `paper`: SimCLR with ResNet18 takes 11.9 s per epoch of CIFAR-10 on one A100, batch 512 (measured
  by others, without penalty).
* `cpu`: the median step of a finished run on the same data set, or 20 GFLOP/s if there is none.

Several devices are assumed to share the work without loss. Evaluation is not counted.
"""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import ml_collections
import numpy as np

from experiments.datasets import DATASETS
from experiments.figures.cost import seconds
from experiments.records import Records
from experiments.runs import Run, num_steps, train_rows
from invclr_jax.durations import duration
from invclr_jax.methods import find_method
from invclr_jax.models.build import build_encoder

A100_EPOCH = 11.9
A100_BATCH = 512
CPU_FLOPS = 20e9

# Step with penalty over step without, if no record has it: measured on two CPU cores with
# ResNet18 at full width (`finite` uses the second view on Spirograph; elsewhere one forward and
# backward pass in addition to those of the two views).
PENALTY_RATIOS = {"sampled": 2.2, "moments": 2.2, "forward": 1.9, "exact": 5.0, "finite": 1.5}


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one run takes.

    Attributes:
      run: the run.
      steps: updates.
      images: pictures drawn, two views of each training picture.
      seconds: expected on one device.
    """

    run: Run
    steps: int
    images: int
    seconds: float


def estimate(run: Run, records: Records) -> Cost:
    """The expected cost of one seed of a run.

    Args:
      run: what to train.
      records: of the same scale, for measured times.
    """
    config = run.config(seed=0)
    steps = num_steps(config)
    measured = records.stat(run.dataset, run.name, seconds)
    step = measured.mean if measured is not None else _plain_step(run, config, records)
    if measured is None and config.penalty.weight:
        step *= penalty_ratio(config, records)
    return Cost(run, steps, 2 * steps * config.batch_size, steps * step)


def penalty_ratio(config: ml_collections.ConfigDict, records: Records) -> float:
    """Time of a penalised step over a plain one: from records of the estimator, or the table."""
    estimator, data = config.penalty.estimator, config.data.name
    found = [
        seconds(record) / plain.mean
        for record in records
        if record["config"]["data"]["name"] == data
        and record["config"]["penalty"]["estimator"] == estimator
        and record["config"]["penalty"]["weight"]
        and (plain := records.stat(record["dataset"], "none", seconds)) is not None
    ]
    if found:
        return float(np.median(found))
    free = estimator == "finite" and not DATASETS[data].has_beta
    return 1.0 if free else PENALTY_RATIOS[estimator]


def _plain_step(run: Run, config, records: Records) -> float:
    measured = records.stat(run.dataset, "none", seconds)
    if measured is not None:
        return measured.mean
    passes = find_method(config.method).passes
    flops = passes * config.batch_size * forward_flops(config)
    return flops / (CPU_FLOPS if run.scale == "cpu" else _a100_flops())


def _a100_flops() -> float:
    config = Run("paper", "cifar10", "none").config(seed=0)
    config.model.name = "resnet18"
    steps = train_rows(config) // A100_BATCH
    return 6 * A100_BATCH * forward_flops(config) * steps / A100_EPOCH


def forward_flops(config: ml_collections.ConfigDict) -> float:
    """Floating-point operations of the encoder on one picture."""
    return _flops(config.model.name, config.model.width, config.transform.size or 32)


@functools.cache
def _flops(name: str, width: int, size: int) -> float:
    model = ml_collections.ConfigDict({"name": name, "width": width, "conv": "xla"})
    module = build_encoder(model, image_size=size)
    images = jax.ShapeDtypeStruct((1, size, size, 3), np.float32)
    variables = jax.eval_shape(module.init, jax.random.key(0), images)
    analysis = jax.jit(module.apply).lower(variables, images).cost_analysis()
    return float((analysis or {})["flops"])


def describe(runs: Sequence[Run], records: Records, seeds: int, devices: int) -> str:
    """The plan as text: one line per run, and the sum.

    Args:
      runs: each once.
      records: of the same scale.
      seeds: of each run.
      devices: that share the work.
    """
    costs = [estimate(run, records) for run in runs]
    lines = [f"{'run':<42} {'steps':>9} {'images':>14} {'time per seed':>13}"]
    for cost in costs:
        time = duration(cost.seconds / devices)
        lines.append(f"{cost.run!s:<42} {cost.steps:>9,} {cost.images:>14,} {time:>13}")
    time = duration(seeds * sum(cost.seconds for cost in costs) / devices)
    steps, images = sum(cost.steps for cost in costs), sum(cost.images for cost in costs)
    total = f"{len(costs)} runs × {seeds} seeds"
    lines.append(f"{total:<42} {seeds * steps:>9,} {seeds * images:>14,} {time:>13} in total")
    assert __doc__ is not None
    return "\n".join([*lines, "", f"on {devices} device(s). {__doc__.partition(chr(10) * 2)[2]}"])
