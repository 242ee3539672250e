"""What `experiments.all_rows` measured, as two tables: means, and differences from no penalty."""

from collections.abc import Mapping

from experiments.all_rows import COLUMNS
from experiments.figures.canonical import interval
from experiments.records import summarise
from experiments.tables import Cell, Table

Rows = Mapping[str, Mapping[str, float]]
"""What was measured, by `run/seed`."""

LEAST = 3
"""Number of seeds from which on an interval is given."""
HIDDEN = ("error", "l2")
SHARES = ("alpha", "correlation")
"""Columns between 0 and 1; all others are percents."""


def markdown(rows: Rows, reference: str = "none") -> str:
    """Both tables.

    Args:
      rows: the measurements.
      reference: the run that differences are from, paired by seed.
    """
    return f"{means(rows).markdown()}\n{differences(rows, reference).markdown()}"


def shown(rows: Rows) -> list[str]:
    """The columns that all rows have: older records lack some."""
    return [
        column
        for column in COLUMNS
        if column not in HIDDEN and all(column in row for row in rows.values())
    ]


def means(rows: Rows) -> Table:
    """The mean over seeds of each run ± one standard error."""
    cells: list[list[Cell]] = []
    columns = shown(rows)
    for name, seeds in _by_run(rows).items():
        stats = [summarise([row[column] for row in seeds.values()]) for column in columns]
        cells.append([name, str(len(seeds)), *stats])
    return Table("All 50,000 and 10,000 rows", _header(columns), cells)


def differences(rows: Rows, reference: str) -> Table:
    """Each run minus the reference of the same seed: mean and 95 % interval by Student's t."""
    runs, columns = _by_run(rows), shown(rows)
    base = runs.get(reference, {})
    cells = []
    for name, seeds in runs.items():
        common = sorted(seeds.keys() & base.keys())
        if name != reference and common:
            found = [_difference(seeds, base, common, column) for column in columns]
            cells.append([name, str(len(common)), *found])
    return Table(f"Differences from {reference}, paired by seed", _header(columns), cells)


def by_measure(rows: Rows, reference: str = "none") -> Table:
    """A row for each measure: the reference's mean, and each run's difference from it.

    Args:
      rows: the measurements.
      reference: the run that differences are from, paired by seed.
    """
    runs = _by_run(rows)
    base, others = runs[reference], [name for name in runs if name != reference]
    cells: list[list[Cell]] = []
    for column in shown(rows):
        mean = summarise([row[column] for row in base.values()])
        found = [
            _difference(runs[name], base, sorted(runs[name].keys() & base.keys()), column)
            for name in others
        ]
        cells.append([COLUMNS[column], mean, *found])
    title = f"{reference}, and differences from it paired by seed"
    heads = [f"{name} ({len(runs[name])} seeds)" for name in (reference, *others)]
    return Table(title, ["", *heads], cells)


def _difference(seeds: Rows, base: Rows, common: list[str], column: str) -> str:
    found = [seeds[seed][column] - base[seed][column] for seed in common]
    places = 3 if column in SHARES else 2
    if len(found) < LEAST:
        return f"{sum(found) / len(found):+.{places}f}"
    mean, low, high = interval(found)
    arrow = " ↑" if low > 0 else " ↓" if high < 0 else ""
    return f"{mean:+.{places}f} ({low:.{places}f} to {high:.{places}f}){arrow}"


def _by_run(rows: Rows) -> dict[str, dict[str, Mapping[str, float]]]:
    """Run -> seed -> measurements."""
    found: dict[str, dict[str, Mapping[str, float]]] = {}
    for key in sorted(rows):
        name, _, seed = key.rpartition("/")
        found.setdefault(name, {})[seed] = rows[key]
    return found


def _header(columns: list[str]) -> list[str]:
    return ["run", "seeds", *(COLUMNS[column] for column in columns)]
