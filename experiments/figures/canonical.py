"""Our question: does missing canonical correlation win by the rule of docs/canonical_rule.md?

Asked on Spirograph at two sizes of picture.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import scipy.stats

from experiments.datasets import DATASETS
from experiments.experiment import Experiment
from experiments.figures.metrics import RATIO, TASKS, averages, error, explained
from experiments.plots import Panel, curves
from experiments.records import Metric, Record, Records, summarise
from experiments.tables import Cell, Column, Table, metric_table
from invclr_jax.transforms.spirograph import RANGES

FORMS = {
    "none": "no penalty",
    "sampled-unit-0.01": "unit, sampled (the paper's), λ 0.01",
    "unit-0.01": "unit, forward, λ 0.01",
    "finite-relative-1": "relative, finite, λ 1",
    "finite-infonce-1": "InfoNCE on z, λ 1",
    "finite-varcov-1": "VICReg's variance and covariance of z, λ 1",
    "finite-canonical-1": "canonical, λ 1, ridge 0.01",
    "finite-canonical-ridge0.25-1": "canonical, λ 1, ridge 0.25",
    "finite-canonical-ridge0.1-1": "canonical, λ 1, ridge 0.1",
    "finite-canonical-0.1": "canonical, λ 0.1, ridge 0.01",
    "finite-canonical-0.3": "canonical, λ 0.3, ridge 0.01",
    "finite-canonical-3": "canonical, λ 3, ridge 0.01",
    "batch128-none": "no penalty, batch 128",
    "batch128-finite-canonical-1": "canonical, λ 1, ridge 0.01, batch 128",
    "bfloat16-none": "no penalty, bfloat16",
}
"""Runs on Spirograph and what they are called here."""
LARGER = ("none", "sampled-unit-0.01", "finite-canonical-1")
"""Those on pictures of 32×32."""
CANDIDATE = "finite-canonical-1"
FIRST, FRESH = range(5), range(5, 10)
"""Seeds by which the candidate is judged, and those of the one form that was chosen afterwards."""
PLOTTED = (
    "none",
    "unit-0.01",
    "finite-infonce-1",
    "finite-varcov-1",
    CANDIDATE,
    "finite-canonical-ridge0.25-1",
)
LEAST = 3
"""Pairs below which an interval is not shown: with 2 it is 13 standard errors to each side."""

JUDGED: dict[str, Metric] = {
    "error, M=1": error("M=1"),
    "error, M=50": error("M=50"),
    "h +0.5, kept": error("robustness/h_shift=+0.5/kept"),
    "h +0.5, refitted": error("robustness/h_shift=+0.5/refitted"),
    "background ±0.4, kept": error("robustness/background_widen=0.4/kept"),
    "background ±0.4, refitted": error("robustness/background_widen=0.4/refitted"),
}
"""Errors that the rule compares by their quotient; alpha explained by its difference."""


def determination(features: str, task: str) -> Callable[[Record], float]:
    """R² of a factor: 1 - error/variance."""
    low, high = RANGES[task]
    return lambda record: 1 - record["metrics"][error(features, task)] / ((high - low) ** 2 / 12)


MEASURED = (
    Column("alpha explained", explained, "low"),
    Column("mean canonical correlation", "invariance/canonical_correlation", "high"),
    Column("V_cond/V_total", RATIO, "low"),
    Column("effective rank", "invariance/effective_rank"),
    *(Column(name, metric, "low") for name, metric in JUDGED.items()),
)
DETERMINATIONS = tuple(
    Column(f"{task}, {features}", determination(features, task), "high")
    for features in ("M=1", "M=50")
    for task in TASKS
)


def base(name: str) -> str:
    """The run without a penalty that a run is compared with."""
    return "batch128-none" if name.startswith("batch128-") else "none"


def paired(
    records: Sequence[Sequence[Record]], metric: Metric, scale: Callable[[float], float]
) -> list[float]:
    """Differences of scale(metric) between two runs, for each seed that both have.

    Args:
      records: of the one run and of the other.
      metric: what is compared.
      scale: what is subtracted: itself, or its logarithm.
    """
    values = [{record["seed"]: _value(record, metric) for record in run} for run in records]
    return [
        scale(value) - scale(values[1][seed])
        for seed, value in values[0].items()
        if seed in values[1]
    ]


def _value(record: Record, metric: Metric) -> float:
    return record["metrics"][metric] if isinstance(metric, str) else metric(record)


def interval(differences: list[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval by Student's t."""
    stat = summarise(differences)
    assert stat.error is not None
    width = float(scipy.stats.t.ppf(0.975, stat.seeds - 1)) * stat.error
    return stat.mean, stat.mean - width, stat.mean + width


def verdict(differences: list[float], *, quotient: bool) -> str:
    """Mean and interval as text, with an arrow if the interval excludes no difference."""
    if len(differences) < LEAST:
        return "–"
    found = interval(differences)
    arrow = " ↓" if found[2] < 0 else " ↑" if found[1] > 0 else ""
    if quotient:
        mean, low, high = (f"{math.exp(value):.2f}" for value in found)
    else:
        mean, low, high = (f"{value:+.3f}" for value in found)
    return f"{mean} ({low} to {high}){arrow}"


def judged(records: Records, dataset: str, other: Callable[[str], str], title: str) -> list[Table]:
    """The rule's table: each form against another."""
    rows: list[list[Cell]] = []
    for name, text in FORMS.items():
        both = [records.of(dataset, each) for each in (name, other(name))]
        alpha = paired(both, explained, float)
        if name != other(name) and len(alpha) >= LEAST:
            errors = (paired(both, metric, math.log) for metric in JUDGED.values())
            cells = (verdict(logs, quotient=True) for logs in errors)
            rows.append([text, str(len(alpha)), verdict(alpha, quotient=False), *cells])
    return [Table(title, ["", "seeds", "alpha explained", *JUDGED], rows)] if rows else []


def tables(records: Records, dataset: str = "spirograph") -> list[Table]:
    """Against no penalty, every form against W, what was measured, R²; then the fresh seeds."""
    fresh, records = (_of_seeds(records, seeds) for seeds in (FRESH, FIRST))
    of, title = DATASETS[dataset].title, f"each form against {FORMS[CANDIDATE]}"
    return [
        *judged(records, dataset, base, f"{of}: each form against no penalty"),
        *judged(records, dataset, lambda _: CANDIDATE, f"{of}: {title}"),
        *_means(records, dataset, MEASURED, f"{of}: what was measured"),
        *_means(records, dataset, DETERMINATIONS, f"{of}: R² of each factor"),
        *judged(fresh, dataset, base, f"{of}: the mended form against no penalty, fresh seeds"),
    ]


def _of_seeds(records: Records, seeds: range) -> Records:
    """The records of some seeds only."""
    return Records([record for record in records if record["seed"] in seeds], records.scale)


def _means(records: Records, dataset: str, columns: Sequence[Column], title: str) -> list[Table]:
    """`metric_table` with the names of `FORMS`."""
    made = [name for name in FORMS if records.of(dataset, name)]
    found = metric_table(records, dataset, made, columns, title)
    return [
        dataclasses.replace(
            table,
            rows=[[FORMS[name], *row[1:]] for name, row in zip(made, table.rows, strict=True)],
        )
        for table in found
    ]


def panels(records: Records, dataset: str = "spirograph") -> list[Panel]:
    """Error over M: where averaging overtakes."""
    made = [name for name in PLOTTED if records.of(dataset, name)]
    tasks = ("total", *TASKS) if made else ()
    return [_panel(records, dataset, made, task) for task in tasks]


def _panel(records: Records, dataset: str, names: Sequence[str], task: str) -> Panel:
    def draw(axis):
        ms = averages(records)
        curves(axis, records, dataset, names, ms, lambda m: error(f"M={m}", task))
        axis.set(xlabel="M", xscale="log", yscale="log", title=f"test error of {task}")

    return draw


def _experiment(title: str, dataset: str, forms: Sequence[str]) -> Experiment:
    return Experiment(
        title,
        "By the rule of docs/canonical_rule.md: means over seeds of differences from another form "
        "with the same seed, and their 95 % intervals by Student's t. Alpha explained is compared "
        "by its difference, errors by their quotient; lower is better, and an arrow marks an "
        "interval without 0, or 1. With fewer than three seeds no interval is shown. R² is 1 - "
        "error/variance.",
        lambda scale: [f"{dataset}/{name}" for name in forms] if scale == "cpu" else [],
        functools.partial(tables, dataset=dataset),
        functools.partial(panels, dataset=dataset),
    )


EXPERIMENT = _experiment("Does missing canonical correlation pay?", "spirograph", tuple(FORMS))
ON_LARGER = _experiment("Does it pay on pictures of 32×32?", "spirograph_32", LARGER)
