"""How the cost of our step grows: batch, width, picture size, L, the size of alpha, and M.

Small encoders, each sweep interleaved. Dashed in the plot: the time that the step's arithmetic
would take at the machine's matrix-product peak, measured in the same run. The arithmetic is XLA's
count of the step with plain convolutions, before optimisation.
"""

import dataclasses
import functools
import math
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import Row, interleaved, medians
from benchmarks.ours import Run, setting
from invclr_jax import config as configuration
from invclr_jax import data
from invclr_jax.config.build import Own
from invclr_jax.evaluation.features import average_features
from invclr_jax.models.network import on_one_device
from invclr_jax.training.step import train_step
from invclr_jax.transforms.spirograph import SpirographTransform

BASE: dict[str, Any] = {
    "model__name": "resnet10",  # most of this benchmark's time is compilation
    "model__width": 8,
    "batch_size": 64,
    "transform__size": 16,
}
NUISANCE = SpirographTransform().nuisance
ROWS = 4096
PEAK_SIZES = (1024, 2048, 4096)


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Values of one key of the configuration.

    Attributes:
      name: for the plot's axis.
      key: of the configuration, or `alpha` for the number of nuisances.
      values: of the key.
      lines: name of each line in the plot: whether it is penalised, and its estimator.
    """

    name: str
    key: str
    values: Sequence[int]
    lines: dict[str, tuple[bool, str]]


BOTH = {"plain": (False, "forward"), "penalised": (True, "forward")}
SWEEPS = (
    Sweep("batch", "batch_size", (32, 64, 128, 256), BOTH),
    Sweep("width", "model__width", (4, 8, 16, 32), BOTH),
    Sweep("picture size", "transform__size", (8, 16, 32), BOTH),
    Sweep("L", "penalty__num_samples", (1, 10, 100, 1000), {"sampled": (True, "sampled")}),
    Sweep("size of alpha", "alpha", (1, 3, 6), {n: (True, n) for n in ("forward", "exact")}),
)
AVERAGES = (1, 2, 4, 8, 16, 32)


def rows(repeats: int) -> list[Row]:
    """One row per point, after the machine's peak."""
    peak = matrix_product_peak(repeats)
    table = [Row("matrix-product peak, float32", peak / 1e9, unit="GFLOP/s")]
    for sweep in SWEEPS:
        table += _sweep(sweep, repeats, peak)
    return table + _averaging(repeats)


def matrix_product_peak(repeats: int) -> float:
    """Most operations per second of square float32 matrix products of several sizes."""
    multiply = jax.jit(jnp.matmul)
    best = 0.0
    for n in PEAK_SIZES:
        a = jax.random.normal(jax.random.key(0), (n, n))
        jax.block_until_ready(multiply(a, a))
        for _ in range(repeats):
            start = time.perf_counter()
            jax.block_until_ready(multiply(a, a))
            best = max(best, 2 * n**3 / (time.perf_counter() - start))
    return best


def _sweep(sweep: Sweep, repeats: int, peak: float) -> list[Row]:
    contenders, flops = {}, {}
    for line, (penalised, estimator) in sweep.lines.items():
        for value in sweep.values:
            run = _run(estimator, **{sweep.key: value})
            contenders[line, value] = functools.partial(run.step, penalised)
            flops[line, value] = count_flops(run, penalised)
    found = _medians(contenders, repeats)
    return [
        _row(sweep.name, *point, found[point], {"flops": flops[point], "peak": peak})
        for point in contenders
    ]


def _medians(contenders: Mapping[Any, Callable[[], Any]], repeats: int) -> dict[Any, float]:
    return medians(interleaved(contenders, repeats=repeats, warmup=2))


def _row(sweep: str, line: str, value: int, seconds: float, counted: dict[str, float]) -> Row:
    details: dict[str, Any] = {"sweep": sweep, "line": line, "value": value}
    if counted:
        at_peak = counted["flops"] / counted["peak"]
        details |= {**counted, "seconds_at_peak": at_peak, "share_of_peak": at_peak / seconds}
    return Row(f"{sweep} {value}, {line}", seconds, details=details)


def _run(estimator: str, **changed: int) -> Run:
    """A run that differs from the base in some keys, or in the number of nuisances (`alpha`)."""
    overrides = BASE | {"penalty__estimator": estimator} | changed
    return _make(overrides.pop("alpha", len(NUISANCE)), tuple(overrides.items()))


@functools.cache
def _make(alpha_size: int, overrides: tuple[tuple[str, Any], ...]) -> Run:
    config = setting(**dict(overrides))
    transform = _spirograph(alpha_size, config.transform.size)
    x = np.asarray(transform.x.sample(jax.random.key(0), ROWS), np.float32)
    return Run(config, data.Dataset("spirograph", data.Split(x), None), transform)


def _spirograph(alpha_size: int, size: int) -> SpirographTransform:
    """The renderer with its first nuisances as alpha and the others moved to x."""
    moved = NUISANCE[alpha_size:]
    interest = (*SpirographTransform().interest, *moved)
    return SpirographTransform(interest, NUISANCE[:alpha_size], size)


def count_flops(run: Run, penalised: bool) -> float:
    """Operations of a step of the whole batch with plain convolutions, as XLA counts them."""
    config = run.config.copy_and_resolve_references()
    config.model.conv = "xla"
    own = Own(transform=run.recipe.method.transform)
    dataset = data.Dataset("spirograph", data.Split(run.rows), None)
    recipe = configuration.from_config(config, dataset, own, axis=None)
    shape = jax.ShapeDtypeStruct
    state = jax.tree.map(lambda copies: shape(copies.shape[1:], copies.dtype), run.state)
    rows = {"image": shape(run.rows.shape, run.rows.dtype)}
    indices = shape((config.batch_size,), jnp.int32)
    step = jax.jit(functools.partial(train_step, recipe, penalised))
    lowered = step.lower(state, rows, indices, recipe.key)
    return float((lowered.cost_analysis() or {})["flops"])


def _averaging(repeats: int) -> list[Row]:
    """Feature averaging over M transformations, of one batch."""
    run = _run("forward")
    method = run.recipe.method
    transform, module = method.transform, on_one_device(method.encoder)
    size, x = run.config.transform.size, run.rows[: run.config.batch_size]
    variables = jax.jit(module.init)(jax.random.key(0), jnp.zeros((2, size, size, 3)))
    encode = jax.tree_util.Partial(jax.jit(module.apply), variables)
    average = functools.partial(average_features, encode, transform, x, jax.random.key(1))
    contenders = {m: functools.partial(average, m, batch_size=len(x)) for m in AVERAGES}
    found = _medians(contenders, repeats)
    return [_row("M", "features", m, found[m], {}) for m in AVERAGES]


def plot(rows: list[Row], path: pathlib.Path) -> None:
    """One panel per sweep; dashed: the time at the machine's peak."""
    import matplotlib.pyplot as plt

    points = [row for row in rows if "sweep" in row.details]
    sweeps = list(dict.fromkeys(row.details["sweep"] for row in points))
    height = math.ceil(len(sweeps) / 3)
    figure, panels = plt.subplots(
        height, 3, figsize=(10, 3 * height), layout="constrained", sharey=True, squeeze=False
    )
    for sweep, axes in zip(sweeps, panels.flat, strict=False):
        axes.set(xscale="log", yscale="log", xlabel=sweep)
        here = [row for row in points if row.details["sweep"] == sweep]
        for line in dict.fromkeys(row.details["line"] for row in here):
            _line(axes, line, [row for row in here if row.details["line"] == line])
        axes.legend(fontsize="small")
    for axes in panels[:, 0]:
        axes.set_ylabel("seconds")
    figure.suptitle(f"Our step; dashed: its arithmetic at {rows[0].ours:.0f} GFLOP/s")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _line(axes, name: str, rows: list[Row]) -> None:
    values = [row.details["value"] for row in rows]
    (drawn,) = axes.plot(values, [row.ours for row in rows], "o-", label=name)
    if "seconds_at_peak" in rows[0].details:
        at_peak = [row.details["seconds_at_peak"] for row in rows]
        axes.plot(values, at_peak, "--", color=drawn.get_color())
    axes.set_xticks(values, [str(value) for value in values])
    axes.set_xticks([], minor=True)
