"""What an audit found: numbers by name, a table, a JSON file, a page."""

import dataclasses
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from invclr_jax.evaluation.audit.bootstrap import Interval
from invclr_jax.files import write_atomically

COLUMNS = {
    "V_cond": "v_cond/{}",
    "V_total": "v_total/{}",
    "ratio": "ratio/{}",
    "canonical": "canonical_correlation/{}",
    "(between)": "between/canonical_correlation/{}",
    "cosine": "cosine/{}",
    "(between) ": "between/cosine/{}",
    "whitened": "whitened_cosine/{}",
    "(between)  ": "between/whitened_cosine/{}",
    "MRR": "retrieval/mrr/{}",
    "hits@1": "retrieval/hits_at_1/{}",
    "alpha R²": "alpha/linear/r2/{}",
    "by MLP": "alpha/mlp/r2/{}",
    "pair R²": "difference/linear/r2/{}",
    "by MLP ": "difference/mlp/r2/{}",
    "Lie": "lie/{}/relative",
    "Lie²": "lie/{}/mean_square",
    "|Lie|": "lie/{}/mean_absolute",
}
"""Heading -> the metric's name, with the part in the place of {}."""


@dataclasses.dataclass(frozen=True, eq=False)
class Report:
    """The report card of one encoder.

    Attributes:
      name: of the encoder.
      metrics: name -> number; `between/…` beside every similarity is the same between different
        pictures.
      intervals: bootstrap intervals of those that have one.
      parts: what was varied, in order.
      about: how it was made: numbers of pictures and features, transform, settings.
      strips: part -> pictures `[points, h, w, c]` in [0, 1] along it, for the page.
    """

    name: str
    metrics: dict[str, float]
    intervals: dict[str, Interval]
    parts: tuple[str, ...]
    about: dict[str, Any]
    strips: dict[str, np.ndarray] = dataclasses.field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return "\n".join([self._title(), "", grid_text(self.rows()), "", *self.remarks()])

    def rows(self) -> list[list[str]]:
        """The table: a heading, then one row per part."""
        header = ["", *(heading.strip() for heading in COLUMNS)]
        body = [
            [part, *(_text(self.metrics.get(name.format(part))) for name in COLUMNS.values())]
            for part in self.parts
        ]
        return [header, *body]

    def remarks(self) -> list[str]:
        """Shifts and corruptions, a line each."""
        lines = []
        shifts = [name for name in self.metrics if name.startswith("shift/")]
        kept = [name for name in shifts if name.endswith("/consistency")]
        if kept:
            values = "  ".join(
                f"{name.split('/')[1].removeprefix('pixels=')}px {self.metrics[name]:.3f}"
                for name in kept
            )
            by_chance = self.metrics[f"between/{kept[0]}"]
            lines.append(f"predictions kept under shifts: {values} (between {by_chance:.3f})")
        for name, words in (
            ("probe/clean/accuracy", "probe accuracy, clean pictures"),
            ("corruption/mean/accuracy", "probe accuracy, mean over corruptions"),
        ):
            if name in self.metrics:
                low, high = self.intervals[name]
                lines.append(f"{words}: {self.metrics[name]:.2f} % [{low:.2f}, {high:.2f}]")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pictures, as plain values."""
        return {
            "name": self.name,
            "about": self.about,
            "parts": list(self.parts),
            "metrics": self.metrics,
            "intervals": {name: list(ends) for name, ends in self.intervals.items()},
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Writes the numbers to a file."""
        write_atomically(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes one page with tables and plots that opens anywhere."""
        from invclr_jax.evaluation.audit.page import page  # here: it plots

        write_atomically(path, page([self]))

    def _title(self) -> str:
        about = self.about
        return (
            f"{self.name}: {about['features']} features of {about['images']} pictures, "
            f"{about['confidence']:.0%} intervals in the file"
        )


def beside(reports: Sequence[Report]) -> str:
    """Reports side by side, one row per measure and part."""
    header = ["", *(report.name for report in reports)]
    rows = []
    for name in COLUMNS.values():
        for part in dict.fromkeys(part for report in reports for part in report.parts):
            metric = name.format(part)
            values = [report.metrics.get(metric) for report in reports]
            if any(value is not None for value in values):
                rows.append([metric, *map(_text, values)])
    for metric in ("probe/clean/accuracy", "corruption/mean/accuracy"):
        values = [report.metrics.get(metric) for report in reports]
        if any(value is not None for value in values):
            rows.append([metric, *map(_text, values)])
    return grid_text([header, *rows])


def grid_text(rows: Sequence[Sequence[str]]) -> str:
    """Rows as aligned text."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _text(value: float | None) -> str:
    if value is None:
        return ""
    if abs(value) >= 1000 or 0 < abs(value) < 0.001:
        return f"{value:.2g}"
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.3f}"
