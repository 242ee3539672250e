"""Our question: does the penalty make representations invariant, or only small?"""

import numpy as np

from experiments.experiment import Experiment
from experiments.figures import fig6
from experiments.figures.metrics import (
    CONDITIONAL,
    RATIO,
    TASKS,
    TOTAL,
    VARIANCES,
    at_largest,
    error,
    explained,
)
from experiments.plots import Panel, colour, kind
from experiments.records import Metric, Records
from experiments.tables import Column, Table, metric_table

INVARIANCE = (
    *VARIANCES,
    Column("alpha explained", explained, "low"),
    Column("effective rank", "invariance/effective_rank"),
    Column("mean |z|", "invariance/mean_norm"),
)
DOWNSTREAM = (
    *(Column(f"{text}, M=1", error("M=1", task), "low") for task, text in TASKS.items()),
    *(
        Column(f"{text}, largest M", at_largest(lambda m, t=task: error(m, t)), "low")
        for task, text in TASKS.items()
    ),
)


def tables(records: Records) -> list[Table]:
    """Invariance, then downstream error, of every form and lambda."""
    names = fig6.names(records.scale)
    return metric_table(
        records, "spirograph", names, INVARIANCE, "Every form: invariant or small?"
    ) + metric_table(
        records, "spirograph", names, DOWNSTREAM, "Every form: test error of the four factors"
    )


def panels(records: Records) -> list[Panel]:
    """Each point is a run's mean over seeds; grey lines have the same ratio."""
    if not records.names("spirograph"):
        return []
    return [
        lambda axis: _variances(axis, records),
        lambda axis: _scatter(
            axis, records, RATIO, explained, "V_cond/V_total", "alpha explained by z"
        ),
        lambda axis: _scatter(
            axis, records, RATIO, error("M=1"), "V_cond/V_total", "total test error, M=1"
        ),
    ]


def _scatter(axis, records: Records, x: Metric, y: Metric, xlabel: str, ylabel: str) -> None:
    named: set[str] = set()
    for name in fig6.names(records.scale):
        one, other = records.stat("spirograph", name, x), records.stat("spirograph", name, y)
        if one is None or other is None:
            continue
        form = kind(name)
        axis.errorbar(
            *(one.mean, other.mean, other.error, one.error),
            fmt="s" if name == "none" else "o",
            color=colour(name),
            ms=6,
            label=None if form in named else form.replace("-", " ").replace("none", "no penalty"),
        )
        if name != "none":
            axis.annotate(name.split("-")[-1], (one.mean, other.mean), fontsize=7, alpha=0.7)
        named.add(form)
    axis.set(xlabel=xlabel, ylabel=ylabel, xscale="log", title=f"{ylabel} by {xlabel}")
    if "explained" not in ylabel:
        axis.set_yscale("log")


def _variances(axis, records: Records) -> None:
    _scatter(axis, records, TOTAL, CONDITIONAL, "V_total", "V_cond")
    low, high = axis.get_xlim()
    limits = axis.get_ylim()
    for ratio in (1, 0.1, 0.01, 0.001):
        xs = np.array([low, high])
        axis.plot(xs, ratio * xs, color="#8886", lw=0.8, zorder=0)
        axis.annotate(f"ratio {ratio:g}", (low, ratio * low), fontsize=7, color="#888")
    axis.set(xlim=(low, high), ylim=limits)


EXPERIMENT = Experiment(
    "Invariant, or only small?",
    "A penalty on z/|z| can be satisfied by moving all representations to one side: then V_cond "
    "and V_total fall together. Points on one grey line are equally invariant. A form is better "
    "where the ratio, the share of alpha explained and the downstream error are all lower.",
    fig6.EXPERIMENT.runs,
    tables,
    panels,
)
