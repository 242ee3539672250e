"""Our question: which differences from no penalty are more than chance, seed by seed?"""

import math

from scipy import stats

from experiments.experiment import Experiment
from experiments.figures import fig6, normalisation, onset
from experiments.figures.scoreboard import SPIROGRAPH
from experiments.plots import ASIDE, Panel, colour, label
from experiments.records import Metric, Records, Stat
from experiments.tables import Cell, Table

MEASURES = (
    "V_cond/V_total",
    "alpha readable",
    "total, M=1",
    "total, largest M",
    "h +0.5, kept",
    "h +0.5, refitted",
    "background ±0.4, kept",
    "background ±0.4, refitted",
)
LEAST = 3
"""Seeds below which an interval means nothing: with 2 it is 13 standard errors to each side."""


def base(name: str) -> str:
    """The run without a penalty that a run is compared with: `row-none` for `row-unit-0.01`."""
    return "-".join([word for word in name.split("-") if word in ASIDE] + ["none"])


def wanted(scale: str) -> list[str]:
    """Every form, ramp and normalisation, each once."""
    return [*dict.fromkeys([*fig6.names(scale), *onset.names(scale), *normalisation.names(scale)])]


def names(records: Records) -> list[str]:
    """Those with a penalty that have enough seeds for an interval."""
    found = [name for name in wanted(records.scale) if name != base(name)]
    return [name for name in found if _pairs(records, name) >= LEAST]


def _pairs(records: Records, name: str) -> int:
    stat = records.factor("spirograph", name, SPIROGRAPH["V_cond/V_total"], base(name))
    return 0 if stat is None else stat.seeds


def interval(factor: Stat) -> tuple[float, float]:
    """The 95 % interval of a geometric mean, by Student's t of the logarithms.

    Args:
      factor: with its standard error, of 2 seeds or more.
    """
    assert factor.error is not None
    quantile = stats.t.ppf(0.975, factor.seeds - 1)
    width = math.exp(quantile * factor.error / factor.mean)
    return factor.mean / width, factor.mean * width


def verdict(factor: Stat | None) -> str:
    """A factor, its interval, and an arrow if that excludes 1."""
    if factor is None or factor.error is None:
        return "–"
    low, high = interval(factor)
    arrow = " ↓" if high < 1 else " ↑" if low > 1 else ""
    return f"{_digits(factor.mean)} ({_digits(low)}–{_digits(high)}){arrow}"


def _digits(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _factor(records: Records, name: str, metric: Metric) -> Stat | None:
    return records.factor("spirograph", name, metric, base(name))


def tables(records: Records) -> list[Table]:
    """Factors over no penalty with 95 % intervals."""
    rows: list[list[Cell]] = []
    for name in names(records):
        cells = (verdict(_factor(records, name, SPIROGRAPH[what])) for what in MEASURES)
        rows.append([label(name), str(_pairs(records, name)), *cells])
    title = "Spirograph: factor over no penalty of the same seeds, with its 95 % interval"
    return [Table(title, ["", "seeds", *MEASURES], rows)] if rows else []


def panels(records: Records) -> list[Panel]:
    """An interval for each form; the line is no penalty."""
    found = names(records)
    return [_panel(records, found, what) for what in MEASURES] if found else []


def _panel(records: Records, found: list[str], what: str) -> Panel:
    def draw(axis):
        for row, name in enumerate(found):
            factor = _factor(records, name, SPIROGRAPH[what])
            if factor is not None and factor.error is not None:
                axis.plot(interval(factor), (row, row), color=colour(name), lw=1.5)
                axis.plot(factor.mean, row, "o", color=colour(name), ms=4)
        axis.axvline(1, color="#888", lw=1)
        axis.set_yticks(range(len(found)), [label(name) for name in found])
        axis.invert_yaxis()
        axis.set(xscale="log", title=what)

    return draw


EXPERIMENT = Experiment(
    "Seed by seed: what is more than chance?",
    "Each number is a measure over that of no penalty with the same seeds, and its 95 % interval "
    "by Student's t of the logarithms; below 1 is better. An arrow marks an interval without 1. "
    "With so many numbers, one in twenty would have an arrow by chance. “alpha readable”, “kept” "
    "and “refitted” are as on the scoreboard; “row” is compared with no penalty on “row”.",
    lambda scale: [f"spirograph/{name}" for name in wanted(scale)],
    tables,
    panels,
)
