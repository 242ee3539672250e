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
SHOWN = tuple(column for column in COLUMNS if column not in ("error", "l2"))


def markdown(rows: Rows, reference: str = "none") -> str:
    """Both tables.

    Args:
      rows: the measurements.
      reference: the run that differences are from, paired by seed.
    """
    return f"{means(rows).markdown()}\n{differences(rows, reference).markdown()}"


def means(rows: Rows) -> Table:
    """The mean over seeds of each run ± one standard error."""
    cells: list[list[Cell]] = []
    for name, seeds in _by_run(rows).items():
        stats = [summarise([row[column] for row in seeds.values()]) for column in SHOWN]
        cells.append([name, str(len(seeds)), *stats])
    return Table("All 50,000 and 10,000 rows", _header(), cells)


def differences(rows: Rows, reference: str) -> Table:
    """Each run minus the reference of the same seed: mean and 95 % interval by Student's t."""
    runs = _by_run(rows)
    base = runs.get(reference, {})
    cells = []
    for name, seeds in runs.items():
        common = sorted(seeds.keys() & base.keys())
        if name != reference and common:
            found = [_difference(seeds, base, common, column) for column in SHOWN]
            cells.append([name, str(len(common)), *found])
    return Table(f"Differences from {reference}, paired by seed", _header(), cells)


def _difference(seeds: Rows, base: Rows, common: list[str], column: str) -> str:
    found = [seeds[seed][column] - base[seed][column] for seed in common]
    places = 3 if column == "alpha" else 2  # a share; all others are percents
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


def _header() -> list[str]:
    return ["run", "seeds", *(COLUMNS[column] for column in SHOWN)]
