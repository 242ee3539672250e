"""The report card as one HTML page: tables, plots and pictures in a file that opens anywhere."""

import base64
import html
import io
import json
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from invclr_jax.evaluation.audit.report import COLUMNS, Report

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #00798c; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; }
h1 { letter-spacing: -.02em; } h2 { margin-top: 2.5rem; } p { max-width: 46rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; }
th, td { padding: .3rem .5rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; } thead { background: var(--soft); }
td small { display: block; opacity: .65; } .between { opacity: .6; }
img { max-width: 100%; border-radius: 8px; background: #fff; }
img.strip { image-rendering: pixelated; height: 3rem; background: none; }
.bar { display: inline-block; height: .6rem; border-radius: 3px; background: var(--accent); }
details { margin: 1rem 0; } summary { cursor: pointer; }
"""

HELP = (
    "One part of the transformation varies at a time; everything else is plain. The ratio "
    "V_cond/V_total is 0 for an invariant encoder and 1 if the picture does not matter. A cosine "
    "means little by itself: the grey number beside it is the cosine between different pictures. "
    "R² says how much of the parameter can be read from the features, 0 for none. Lie is the "
    "squared speed of the features as the parameter moves, over their variance."
)


def page(reports: Sequence[Report]) -> str:
    """The page of one or more encoders.

    Args:
      reports: side by side in the plots, one table each.
    """
    title = "How invariant is " + " and ".join(report.name for report in reports) + "?"
    body = [f"<h1>{html.escape(title)}</h1>", f"<p>{html.escape(HELP)}</p>"]
    body += ["<h2>Ratio V_cond/V_total</h2>", _bars(reports)]
    for report in reports:
        body += [f"<h2>{html.escape(report.name)}</h2>", _table(report)]
        body += [f"<p>{html.escape(line)}</p>" for line in report.remarks()]
    body += _plots(reports)
    for report in reports:
        numbers = html.escape(json.dumps(report.to_dict(), indent=1, ensure_ascii=False))
        name = html.escape(report.name)
        body.append(
            f"<details><summary>all numbers of {name}</summary><pre>{numbers}</pre></details>"
        )
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>"
    )
    return f"{head}<body>{''.join(body)}</body></html>\n"


def _bars(reports: Sequence[Report]) -> str:
    """One bar per part and encoder."""
    rows = []
    for part in reports[0].parts:
        for report in reports:
            ratio = report.metrics.get(f"ratio/{part}")
            if ratio is not None:
                bar = f'<span class="bar" style="width:{20 * min(ratio, 1):.2f}rem"></span>'
                name = part if len(reports) == 1 else f"{part}, {report.name}"
                rows.append(
                    f'<tr><td>{html.escape(name)}</td><td style="text-align:left">{bar} '
                    f"{ratio:.3f}</td></tr>"
                )
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def _table(report: Report) -> str:
    header, *rows = report.rows()
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    lines = []
    for part, row in zip(report.parts, rows, strict=True):
        cells = [f"<td>{html.escape(part)}</td>"]
        for name, cell in zip(COLUMNS.values(), row[1:], strict=True):
            interval = report.intervals.get(name.format(part))
            small = f"<small>{interval[0]:.3g} … {interval[1]:.3g}</small>" if interval else ""
            grey = ' class="between"' if name.startswith("between/") else ""
            cells.append(f"<td{grey}>{html.escape(cell)}{small if cell else ''}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _plots(reports: Sequence[Report]) -> list[str]:
    """One panel per parameter with its strip of pictures, then shifts and corruptions."""
    body = [
        "<h2>Along each parameter</h2><p>Whitened cosine to the plain picture; dashed: to a "
        "different one.</p>"
    ]
    for part, strip in reports[0].strips.items():
        body.append(f"<h3>{html.escape(part)}</h3>{_strip(strip)}")
        body.append(_figure(lambda axis, part=part: _along(axis, reports, part), part))
    if any("shift/pixels=0/consistency" in report.metrics for report in reports):
        body.append("<h2>Shifts</h2><p>Predictions that stay the same when the picture moves.</p>")
        body.append(_figure(lambda axis: _shifts(axis, reports), "pixels"))
    if any("corruption/mean/accuracy" in report.metrics for report in reports):
        body.append("<h2>Corruptions</h2><p>Accuracy of the probe, in percent.</p>")
        body.append(_figure(lambda axis: _corruptions(axis, reports), "accuracy (%)", 4.5))
    return body


def _along(axis: Axes, reports: Sequence[Report], part: str) -> None:
    for index, report in enumerate(reports):
        for prefix, style in (("", "-o"), ("between/", "--")):
            start = f"{prefix}along/{part}="
            points = sorted(
                (float(name.removeprefix(start).split("/")[0]), value)
                for name, value in report.metrics.items()
                if name.startswith(start)
            )
            label = report.name if not prefix else None
            axis.plot(*zip(*points, strict=True), style, ms=3, color=f"C{index}", label=label)
    axis.set_ylim(top=1.02)


def _shifts(axis: Axes, reports: Sequence[Report]) -> None:
    for index, report in enumerate(reports):
        names = [f"shift/pixels={i}/consistency" for i in range(100)]
        values = [report.metrics[name] for name in names if name in report.metrics]
        axis.plot(values, "-o", ms=3, color=f"C{index}", label=report.name)
    axis.set_ylim(0, 1.02)


def _corruptions(axis: Axes, reports: Sequence[Report]) -> None:
    for index, report in enumerate(reports):
        found: dict[str, list[float]] = {}
        for name, value in report.metrics.items():
            if name.startswith("corruption/") and "/severity=" in name:
                found.setdefault(name.split("/")[1], []).append(value)
        places = np.arange(len(found)) + 0.8 * index / len(reports)
        means = [float(np.mean(values)) for values in found.values()]
        axis.barh(places, means, 0.8 / len(reports), label=report.name)
        axis.set_yticks(np.arange(len(found)), list(found), fontsize=7)
    axis.invert_yaxis()


def _figure(draw, label: str, height: float = 2.4) -> str:
    figure = Figure(figsize=(7, height), layout="constrained")
    axis = figure.subplots()
    draw(axis)
    axis.set_xlabel(label)
    axis.legend(fontsize=7)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=120)
    return _image(file.getvalue(), label)


def _strip(pictures: np.ndarray) -> str:
    levels = np.round(np.concatenate(pictures, axis=1) * 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(levels if levels.shape[-1] == 3 else levels[..., 0]).save(file, "png")
    return _image(file.getvalue(), "the picture along the parameter", "strip")


def _image(png: bytes, text: str, kind: str = "") -> str:
    data = base64.b64encode(png).decode()
    alt = html.escape(text, quote=True)
    return f'<img class="{kind}" alt="{alt}" src="data:image/png;base64,{data}">'
