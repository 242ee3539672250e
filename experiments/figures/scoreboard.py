"""Our question: which form of the penalty wins on everything?"""

from collections.abc import Callable

import numpy as np

from experiments.datasets import DATASETS, Kind
from experiments.experiment import Experiment
from experiments.figures import fig6
from experiments.figures.metrics import (
    ALPHA,
    RATIO,
    REFERENCE,
    TITLES,
    accuracy,
    at_largest,
    error,
    largest,
)
from experiments.plots import Panel, label
from experiments.records import Metric, Record, Records, Stat
from experiments.runs import COMPARED, compared
from experiments.tables import Best, Cell, Table

Measures = dict[str, Metric]


def readable(record: Record) -> float:
    """The error of a constant for alpha over that of regression on z; 1 is invariant."""
    return record["metrics"][REFERENCE] / record["metrics"][ALPHA]


def mistakes(features: str) -> Callable[[Record], float]:
    """Test error in percent."""
    return lambda record: 100 - record["metrics"][accuracy(features)]


def mistakes_at_largest(record: Record) -> float:
    """Test error in percent at the largest M."""
    return mistakes(f"M={largest(record)}")(record)


SPIROGRAPH: Measures = {
    "V_cond/V_total": RATIO,
    "alpha readable": readable,
    "error m": error("M=1", "m"),
    "error b": error("M=1", "b"),
    "error σ": error("M=1", "sigma"),
    "error f_r": error("M=1", "f_r"),
    "total, M=1": error("M=1"),
    "total, largest M": at_largest(error),
    "h +0.5, refitted": error("robustness/h_shift=+0.5/refitted"),
    "h +0.5, kept": error("robustness/h_shift=+0.5/kept"),
    "background ±0.4, refitted": error("robustness/background_widen=0.4/refitted"),
    "background ±0.4, kept": error("robustness/background_widen=0.4/kept"),
}
PICTURES: Measures = {
    "V_cond/V_total": RATIO,
    "alpha readable": readable,
    "mistakes": mistakes("untransformed"),
    "mistakes, 5 % labels": mistakes("untransformed/fraction=0.05"),
    "mistakes, largest M": mistakes_at_largest,
    "mistakes, S=1, refitted": mistakes("robustness/strength=1/refitted"),
    "mistakes, S=1, kept": mistakes("robustness/strength=1/kept"),
}
MEASURES: dict[Kind, Measures] = {"factors": SPIROGRAPH, "pictures": PICTURES}


def _names(records: Records, data: str) -> list[str]:
    wanted = fig6.names(records.scale) if DATASETS[data].swept else COMPARED[records.scale][data]
    return [name for name in wanted if name != "none" and records.of(data, name)]


def scores(records: Records, data: str) -> dict[str, dict[str, Stat]]:
    """Run -> measure -> factor over no penalty of the same seed; below 1 is better."""
    measures = MEASURES[DATASETS[data].kind]
    found = {
        name: {what: records.factor(data, name, metric) for what, metric in measures.items()}
        for name in _names(records, data)
    }
    return {
        name: {what: stat for what, stat in row.items() if stat is not None}
        for name, row in found.items()
        if any(stat is not None for stat in row.values())
    }


def _datasets(records: Records) -> list[str]:
    return [data for data in COMPARED[records.scale] if scores(records, data)]


def tables(records: Records) -> list[Table]:
    """Factors with their standard errors."""
    found = []
    for data in _datasets(records):
        rows = scores(records, data)
        header = ["", *next(iter(rows.values()))]
        cells: list[list[Cell]] = [[label(name), *row.values()] for name, row in rows.items()]
        title = f"{TITLES[data]}: factor over no penalty, below 1 is better"
        low: list[Best] = ["low"]
        best = [None, *low * (len(header) - 1)]
        found.append(Table(title, header, cells, best, factors=True))
    return found


def panels(records: Records) -> list[Panel]:
    """A coloured table for each data set: green is better than no penalty, red worse."""
    return [_panel(TITLES[data], scores(records, data)) for data in _datasets(records)]


def _panel(title: str, rows: dict[str, dict[str, Stat]]) -> Panel:
    columns = list(next(iter(rows.values())))
    factors = np.array([[stat.mean for stat in row.values()] for row in rows.values()])

    def draw(axis):
        axis.imshow(np.log2(factors), cmap="RdYlGn_r", vmin=-2, vmax=2, aspect="auto")
        for (row, column), factor in np.ndenumerate(factors):
            text = f"{factor:.2g}" if factor < 10 else f"{factor:.0f}"
            axis.text(column, row, text, ha="center", va="center", fontsize=6.5, color="black")
        axis.set_xticks(range(len(columns)), columns, rotation=60, ha="right", fontsize=7)
        axis.set_yticks(range(len(rows)), [label(name) for name in rows], fontsize=7)
        axis.set_title(f"{title}: factor over no penalty", fontsize=10)

    return draw


EXPERIMENT = Experiment(
    "Scoreboard: does any form win on everything?",
    "Each number is a measure over that of no penalty with the same seed (geometric mean): below "
    "1, green, is better. “alpha readable” is a constant's error over that of regression on z; "
    "“kept” and “refitted” are probes under a shift of the transformations (Fig. 4).",
    lambda scale: [*fig6.EXPERIMENT.runs(scale), *compared(scale, *COMPARED[scale])],
    tables,
    panels,
)
