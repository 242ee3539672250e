"""Every method without a penalty, and what each penalty changes: tables of docs/methods.md.

Runs are named METHOD/RUN/seedK. Lambda is not the same for all methods, so runs of a penalty are
recognised by the beginning of their names.
"""

from collections.abc import Mapping

from experiments.all_rows import COLUMNS
from experiments.fair_tables import SHARES, Rows
from experiments.records import summarise
from experiments.tables import Cell, Table

PENALTIES = {
    "sampled-unit": "the paper's penalty",
    "unclipped-finite-canonical-views": "W on the two views",
}
"""How the names of penalised runs begin, and what tables call them."""
SHOWN = ("probe", "knn", "averaged/probe", "averaged/knn", "alpha")


def markdown(rows: Rows) -> str:
    """All tables."""
    tables = [without_penalty(rows), *(changes(rows, start) for start in PENALTIES)]
    return "\n".join(table.markdown() for table in tables)


def without_penalty(rows: Rows) -> Table:
    """Means over seeds ± one standard error, the best probe first."""
    methods = _seeds(rows, "none")
    cells: list[list[Cell]] = []
    for method, seeds in methods.items():
        stats = [summarise([row[column] for row in seeds.values()]) for column in SHOWN]
        cells.append([method, str(len(seeds)), *stats])
    cells.sort(key=lambda row: -row[2].mean)  # type: ignore[union-attr]
    return Table("No penalty", _header(), cells)


def changes(rows: Rows, start: str) -> Table:
    """Differences from no penalty of the same seed, the largest gain of the probe first.

    An arrow says that all seeds have the sign of their mean, and no more than that.

    Args:
      rows: the measurements.
      start: a key of `PENALTIES`.
    """
    plain, penalised = _seeds(rows, "none"), _seeds(rows, start)
    found = []
    for method, seeds in penalised.items():
        common = sorted(seeds.keys() & plain.get(method, {}).keys())
        if common:
            pairs = [(seeds[seed], plain[method][seed]) for seed in common]
            by_column = {c: [new[c] - old[c] for new, old in pairs] for c in SHOWN}
            found.append((method, len(common), by_column))
    found.sort(key=lambda row: -sum(row[2]["probe"]) / row[1])
    cells: list[list[Cell]] = [
        [method, str(count), *(_change(column, by_column[column]) for column in SHOWN)]
        for method, count, by_column in found
    ]
    return Table(f"{PENALTIES[start]}: differences from no penalty", _header(), cells)


def _change(column: str, values: list[float]) -> str:
    places = 3 if column in SHARES else 2
    mean = sum(values) / len(values)
    agree = len(values) > 1 and all(value * mean > 0 for value in values)
    arrow = "" if not agree else " ↑" if mean > 0 else " ↓"
    return f"{mean:+.{places}f}{arrow}"


def _seeds(rows: Rows, start: str) -> dict[str, dict[str, Mapping[str, float]]]:
    """Method -> seed -> measurements of the run whose name begins so."""
    found: dict[str, dict[str, Mapping[str, float]]] = {}
    for key in sorted(rows):
        method, run, seed = key.split("/")
        if run.startswith(start):
            found.setdefault(method, {})[seed] = rows[key]
    return found


def _header() -> list[str]:
    return ["method", "seeds", *(COLUMNS[column] for column in SHOWN)]
