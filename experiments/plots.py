"""What the plots share: colours, labels, curves and bars with one standard error.

A plot is a list of panels, each of which draws itself on one axis: files get them side by side,
the report one by one so that a phone shows them under each other.
"""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from PIL import Image

from experiments.records import Metric, Records, Stat

Panel = Callable[[Axes], None]

COLOURS = {
    "none": "#5f6b7a",
    "unit": "#d1495b",
    "centred": "#edae49",
    "relative": "#8f6bb3",
    "finite-unit": "#00798c",
    "finite-relative": "#2a9d4f",
    "sampled-unit": "#8c1c2b",
    "finite-infonce": "#b5838d",
    "finite-varcov": "#9c6b30",
    "finite-canonical": "#1d4ed8",
    "finite-canonical-ridge0.25": "#38a3ff",
}
OTHERS = ("#30638e", "#a3623a", "#c96fb0", "#7a9e3b")
PANEL_SIZE = (4.6, 3.3)
SPAN = 30
"""Bars in one panel differ by at most this factor."""
ASIDE = ("row", "image", "long", "wide", "unclipped")
"""Words in a run's name that do not change the form of its penalty."""


def label(name: str) -> str:
    """A run's name for people: `finite relative, λ 0.1`."""
    words, aside = _parted(name)
    aside = [word for word in aside if word != "image"]
    if words == ["none"]:
        return ", ".join(["no penalty", *aside])
    return ", ".join([" ".join(words[:-1]), f"λ {words[-1]}", *aside])


def kind(name: str) -> str:
    """The form of a run's penalty: its name without lambda and those words."""
    words, _ = _parted(name)
    return "none" if words == ["none"] else "-".join(words[:-1])


def _parted(name: str) -> tuple[list[str], list[str]]:
    """The words of a run's name that describe its penalty, and the others."""
    words = name.split("-")
    aside = [word for word in words if word in ASIDE or word.startswith("batch")]
    return [word for word in words if word not in aside], aside


def colour(name: str) -> str:
    """The colour, always the same for the same form of the penalty."""
    form = kind(name)
    return COLOURS.get(form) or OTHERS[sum(map(ord, form)) % len(OTHERS)]


def compose(panels: Sequence[Panel]) -> Figure:
    """Draws panels side by side."""
    width, height = PANEL_SIZE
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, axis in zip(panels, axes, strict=False):
        _draw(panel, axis)
    for axis in axes[len(panels) :]:
        axis.axis("off")
    return figure


def png(figure: Figure, dpi: int) -> bytes:
    """The picture as a small PNG file."""
    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi, bbox_inches="tight")
    # Plots have few colours: a palette makes the file a third as large.
    Image.open(drawn).convert("RGB").quantize(128).save(small, "png", optimize=True)
    return small.getvalue()


def _draw(panel: Panel, axis: Axes) -> None:
    panel(axis)
    axis.spines[["top", "right"]].set_visible(False)
    for side in (axis.xaxis, axis.yaxis):
        if side.get_scale() == "log":
            _plain_ticks(side)
    axis.tick_params(which="both", labelsize=8)
    if not axis.images:
        axis.grid(alpha=0.25)
        axis.set_axisbelow(True)
    if count := len(axis.get_legend_handles_labels()[0]):
        axis.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.17),
            fontsize=7.5,
            frameon=False,
            ncols=min(count, 3),
        )


def _plain_ticks(side: Axis) -> None:
    """Numbers on a logarithmic axis as 0.02, as many as it has room for."""
    low, high = side.get_view_interval()
    decades = math.log10(high / low)
    side.set_major_formatter("{x:g}")
    side.set_minor_formatter("{x:g}" if decades < 2 else "")
    if decades < 0.6:
        side.set_major_locator(MaxNLocator(5))
        side.set_minor_locator(NullLocator())
    elif decades < 2:
        side.set_minor_locator(LogLocator(subs=(2, 5)))


def curves(
    axis: Axes,
    records: Records,
    dataset: str,
    names: Sequence[str],
    xs: Sequence[Any],
    metric: Callable[[Any], Metric],
    *,
    style: str = "-",
    legend: bool = True,
) -> None:
    """A line with error bars for each run.

    Args:
      axis: where.
      records: of one scale.
      dataset: whose runs.
      names: the runs.
      xs: horizontal positions.
      metric: the metric at one of them.
      style: of the lines.
      legend: whether to name them.
    """
    for name in names:
        points = records.curve(dataset, name, xs, metric)
        error_line(axis, *points, name, label(name) if legend else None, style)


def error_line(axis: Axes, x, mean, error, name: str, text: str | None, style: str = "-") -> None:
    """A line with error bars in a run's colour; nothing if there are no points."""
    if len(x):
        color = colour(name)
        axis.errorbar(
            x, mean, error, color=color, marker="o", ms=3.5, capsize=2, ls=style, lw=1.5, label=text
        )


def bar_panels(
    records: Records, dataset: str, names: Sequence[str], shown: Mapping[str, Metric]
) -> list[Panel]:
    """One panel per metric with one horizontal bar per run, the first on top.

    Args:
      records: of one scale.
      dataset: whose runs.
      names: the runs.
      shown: title -> metric.
    """
    made = [name for name in names if records.of(dataset, name)]
    panels = {title: _bars(records, dataset, made, metric) for title, metric in shown.items()}
    return [titled(panel, title) for title, panel in panels.items()] if made else []


def titled(panel: Panel, title: str) -> Panel:
    """The panel with a title."""

    def draw(axis: Axes) -> None:
        panel(axis)
        axis.set_title(title, fontsize=10)

    return draw


def _bars(records: Records, dataset: str, names: Sequence[str], metric: Metric) -> Panel:
    stats = {name: records.stat(dataset, name, metric) for name in names}
    return stat_bars({name: stat for name, stat in stats.items() if stat is not None})


def stat_bars(stats: dict[str, Stat]) -> Panel:
    """Horizontal bars, the first on top; points on a logarithmic axis if bars would vanish."""
    means = [stat.mean for stat in stats.values()]
    logarithmic = bool(means) and 0 < SPAN * min(means) < max(means)

    def draw(axis: Axes) -> None:
        for at, (name, stat) in enumerate(reversed(stats.items())):
            if logarithmic:
                axis.errorbar(stat.mean, at, xerr=stat.error, color=colour(name), fmt="o", ms=6)
            else:
                axis.barh(at, stat.mean, xerr=stat.error, color=colour(name), height=0.7, capsize=3)
        axis.set_yticks(range(len(stats)), [label(n) for n in reversed(stats)], fontsize=8)
        axis.set_xscale("log" if logarithmic else "linear")

    return draw
