"""One plot of an evaluation: a curve for whatever was measured at several Ms, fractions, …"""

import io
from collections.abc import Mapping

from invclr_jax.evaluation.tables import Grid, grid

SHOWN = ("accuracy", "total", "mean")
"""Measures worth a curve; the first that a protocol has is used."""

Curves = dict[str, list[tuple[float, float]]]


def curves(cells: Grid) -> Curves:
    """Label -> points (x, y) of rows such as `M=5` or `h_shift=+0.3`, in one measure."""
    columns = {column for row in cells.values() for column in row}
    measure = next((m for m in SHOWN if any(c.split(" ")[-1] == m for c in columns)), None)
    lines: Curves = {}
    for label, row in cells.items():
        word, equals, number = label.rpartition("/")[2].partition("=")
        if not equals:
            continue
        for column, value in row.items():
            *kind, last = column.split(" ")
            if last == measure:
                lines.setdefault(" ".join([word, *kind]), []).append((float(number), value))
    return {label: sorted(points) for label, points in lines.items() if len(points) > 1}


def picture(protocols: Mapping[str, Mapping[str, float]]) -> bytes | None:
    """A PNG with a panel for each protocol that has curves; None if none does.

    Args:
      protocols: name -> metrics.
    """
    panels = {name: curves(grid(metrics)) for name, metrics in protocols.items()}
    panels = {name: lines for name, lines in panels.items() if lines}
    if not panels:
        return None
    from matplotlib.figure import Figure  # here: tables need no plotting library

    figure = Figure(figsize=(4.5 * len(panels), 3.5), layout="constrained")
    for axis, (name, lines) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for label, points in lines.items():
            axis.plot(*zip(*points, strict=True), marker="o", ms=3, label=label)
        words = {label.partition(" ")[0] for label in lines}
        axis.set(title=name, xlabel=", ".join(sorted(words)), ylabel=_unit(protocols[name]))
        axis.legend(fontsize=7)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=120)
    return file.getvalue()


def _unit(metrics: Mapping[str, float]) -> str:
    classes = any(name.endswith("/accuracy") for name in metrics)
    return "test accuracy (%)" if classes else "test squared error"
