"""Tables of means over seeds: as text, Markdown and JSON."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

from experiments.datasets import DATASETS
from experiments.plots import label
from experiments.records import Metric, Record, Records, Stat
from invclr_jax.evaluation.tables import binomial_error

Best = Literal["low", "high"] | None
Cell = str | Stat


@dataclasses.dataclass(frozen=True)
class Column:
    """A metric to tabulate.

    Attributes:
      label: heading.
      metric: what to average over seeds.
      best: whether low or high values are good, None if neither.
    """

    label: str
    metric: Metric
    best: Best = None


@dataclasses.dataclass(frozen=True)
class Accuracy(Column):
    """A percentage of the test rows: high is good, and sampling of the rows gives it an error."""

    best: Best = "high"


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of text and numbers; the first column names the rows.

    Attributes:
      title: what it shows.
      header: headings.
      rows: cells, as many as headings.
      best: for each heading, which extreme to mark.
      extra: more rows, such as the paper's numbers, that are not compared with the others.
      factors: whether numbers are factors, good below 1: a page may colour them.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    best: Sequence[Best] = ()
    extra: Sequence[Sequence[Cell]] = ()
    factors: bool = False

    def marked(self) -> list[list[tuple[str, bool]]]:
        """Each cell as text, and whether it is its column's best."""
        winners = {
            (choose((row[column].mean, at) for at, row in stats)[1], column)
            for column, choose in self._judged()
            if len(stats := self._numbers(column)) > 1
        }
        return [
            [(str(cell), (at, column) in winners) for column, cell in enumerate(row)]
            for at, row in enumerate([*self.rows, *self.extra])
        ]

    def _judged(self) -> list[tuple[int, Callable]]:
        choices = {"low": min, "high": max}
        return [(at, choices[best]) for at, best in enumerate(self.best) if best is not None]

    def _numbers(self, column: int) -> list[tuple[int, Sequence[Any]]]:
        rows = enumerate(self.rows)
        return [(at, row) for at, row in rows if isinstance(row[column], Stat)]

    def narrowed(self, columns: Sequence[int] = (), rows: Sequence[int] = ()) -> "Table":
        """The table with some of its columns and rows, by their numbers from 0; empty for all."""
        for what, numbers, present in (
            ("columns", columns, self.header),
            ("rows", rows, self.rows),
        ):
            if numbers and max(numbers) >= len(present):
                raise ValueError(f"{self.title} has {len(present)} {what}, no {max(numbers)}")

        def chosen(cells: Sequence) -> list:
            return [cells[column] for column in columns or range(len(self.header))]

        return dataclasses.replace(
            self,
            header=chosen(self.header),
            rows=[chosen(self.rows[row]) for row in rows or range(len(self.rows))],
            best=chosen(self.best) if self.best else (),
            extra=[chosen(row) for row in self.extra],
        )

    def markdown(self) -> str:
        """A Markdown table under its title; the best of a column is bold."""
        lines = [f"**{self.title}**", "", _line(self.header), _line(["---"] * len(self.header))]
        for row in self.marked():
            lines.append(_line([f"**{text}**" if best else text for text, best in row]))
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Numbers with mean, standard error and seeds."""
        rows = [
            [dataclasses.asdict(cell) if isinstance(cell, Stat) else cell for cell in row]
            for row in [*self.rows, *self.extra]
        ]
        return {"title": self.title, "header": list(self.header), "rows": rows}


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def metric_table(
    records: Records,
    dataset: str,
    names: Sequence[str],
    columns: Sequence[Column],
    title: str,
    extra: Sequence[Sequence[Cell]] = (),
) -> list[Table]:
    """One row per finished run, one column per metric; no table without rows.

    Args:
      records: of one scale.
      dataset: whose runs.
      names: the runs, in order.
      columns: the metrics.
      title: what it shows.
      extra: rows to add below, see `Table`.
    """
    rows: list[Sequence[Cell]] = []
    for name in names:
        stats = [records.stat(dataset, name, column.metric) for column in columns]
        if any(stat is not None for stat in stats):
            cells: list[Cell] = ["–" if stat is None else stat for stat in stats]
            rows.append([label(name), _seeds(records, dataset, name), *cells])
    if not rows:
        return []
    header = ["", "seeds", *(column.label for column in columns)]
    best = [None, None, *(column.best for column in columns)]
    return [Table(title, header, rows, best, [*extra, *_binomial(records, dataset, columns, rows)])]


def _binomial(records: Records, dataset: str, columns, rows) -> list[list[Cell]]:
    """A row with the standard error of one seed's accuracies, from its number of test rows."""
    if not any(isinstance(column, Accuracy) for column in columns):
        return []
    numbers = {num_test_rows(record) for record in records if record["dataset"] == dataset}
    cells: list[Cell] = ["–" for _ in columns]
    for at, column in enumerate(columns):
        means = [row[at + 2].mean for row in rows if isinstance(row[at + 2], Stat)]
        if isinstance(column, Accuracy) and means:
            cells[at] = f"± {max(binomial_error(mean, min(numbers)) for mean in means):.2g}"
    return [[f"binomial error of one seed, {min(numbers):,} test rows", "1", *cells]]


def num_test_rows(record: Record) -> int:
    """How many test rows a record's accuracies were measured on."""
    return record["evaluation"]["rows"][1] or DATASETS[record["dataset"]].test_rows


def _seeds(records: Records, dataset: str, name: str) -> str:
    return str(len(records.of(dataset, name)))
