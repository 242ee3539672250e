"""Self-contained HTML pages: text, tables and plots in one file that opens anywhere."""

import base64
import html
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Literal

from matplotlib.figure import Figure

from experiments.plots import png
from experiments.report.style import STYLE
from invclr_jax.files import write_atomically

Cell = str | tuple[str, bool]
"""Text, or text and whether it is its column's best."""

Better = Literal["low", "high"] | None
"""Which extreme of a metric is better, if either is."""

BETTER, WORSE = "42,157,79", "209,73,91"


class Page:
    """Collects the parts of a page and writes it.

    Args:
      title: heading of the page.
    """

    def __init__(self, title: str):
        self._title, self._parts = title, [f"<h1>{html.escape(title)}</h1>"]
        self._contents: list[tuple[str, str]] = []

    def heading(self, text: str, anchor: str = "", short: str = "") -> None:
        """Starts a section.

        Args:
          text: the heading.
          anchor: its address within the page.
          short: its name in the bar of contents; none if empty.
        """
        self._parts.append(f'<h2 id="{html.escape(anchor, quote=True)}">{html.escape(text)}</h2>')
        if short:
            self._contents.append((anchor, short))

    def text(self, sentences: str, kind: str = "") -> None:
        """Adds a paragraph; `kind` is a class of the style sheet."""
        self._parts.append(f'<p class="{kind}">{html.escape(sentences)}</p>')

    def commands(self, lines: str) -> None:
        """Adds commands to copy."""
        self._parts.append(f"<pre>{html.escape(lines)}</pre>")

    def cards(self, values: Mapping[str, str]) -> None:
        """Adds a row of numbers, each with what it is."""
        cards = (
            f"<div><b>{html.escape(value)}</b><span>{html.escape(name)}</span></div>"
            for name, value in values.items()
        )
        self._parts.append(f'<div class="cards">{"".join(cards)}</div>')

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        *,
        title: str = "",
        folded: bool = False,
        factors: Sequence[Sequence[float | None]] = (),
    ) -> None:
        """Adds a table; the first column names the rows.

        Args:
          header: headings.
          rows: cells; a row whose name begins with “paper” is tinted.
          title: shown above.
          folded: whether it opens only when its title is clicked.
          factors: for each cell a factor to colour it by, green below 1 and red above, or None.
        """
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
        plain: Sequence[Sequence[float | None]] = [[None] * len(row) for row in rows]
        body = "".join(map(_row, rows, factors or plain))
        table = (
            f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
            "</table></div>"
        )
        if title:
            state = "" if folded else " open"
            table = f"<details{state}><summary>{html.escape(title)}</summary>{table}</details>"
        self._parts.append(table)

    def figure(self, figure: Figure, description: str) -> None:
        """Adds a plot."""
        self._parts.append(_image(png(figure, dpi=110), "png", description))

    def panels(self, figures: Sequence[Figure], description: str) -> None:
        """Adds plots, as many side by side as the window has room for."""
        images = (_image(png(figure, dpi=150), "png", description) for figure in figures)
        self._parts.append(f'<div class="panels">{"".join(images)}</div>')

    def picture(self, data: bytes, kind: str, description: str, still: bytes = b"") -> None:
        """Adds an image file, as wide as the page.

        Args:
          data: its contents.
          kind: `png` or `webp`.
          description: for readers who cannot see it.
          still: a PNG in place of an animation, for readers who prefer reduced motion.
        """
        image = _image(data, kind, description, "hero")
        if still:
            source = f'srcset="{_address(still, "png")}"'
            media = 'media="(prefers-reduced-motion: reduce)"'
            image = f"<picture><source {media} {source}>{image}</picture>"
        self._parts.append(image)

    def write(self, path: pathlib.Path) -> None:
        """Writes the page."""
        links = "".join(f'<a href="#{at}">{html.escape(to)}</a>' for at, to in self._contents)
        page = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(self._title)}</title><style>{STYLE}</style></head><body>"
            + (f"<nav>{links}</nav>" if links else "")
            + "<main>"
            + "\n".join(self._parts)
            + "</main></body></html>\n"
        )
        write_atomically(path, page)


def _row(cells: Sequence[Cell], factors: Sequence[float | None]) -> str:
    pairs = [(cell, False) if isinstance(cell, str) else cell for cell in cells]
    kind = ' class="paper"' if pairs[0][0].startswith("paper") else ""
    inner = "".join(
        f"<td{_tint(factor)}>{f'<b>{html.escape(text)}</b>' if best else html.escape(text)}</td>"
        for (text, best), factor in zip(pairs, factors, strict=True)
    )
    return f"<tr{kind}>{inner}</tr>"


def _tint(factor: float | None) -> str:
    """The style of a cell: full colour at a quarter or four times."""
    if factor is None or factor <= 0:
        return ""
    depth = min(abs(math.log2(factor)) / 2, 1) * 0.6
    return f' style="background:rgba({BETTER if factor < 1 else WORSE},{depth:.2f})"'


def _address(data: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _image(data: bytes, kind: str, description: str, style: str = "") -> str:
    alt = html.escape(description, quote=True)
    return f'<img class="{style}" alt="{alt}" src="{_address(data, kind)}">'


def number(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}"


def comparison(
    page: Page,
    names: Mapping[str, tuple[str, Better]],
    runs: Mapping[str, Mapping[str, float]],
) -> None:
    """A table with one row per metric and one column per run; the best of a row is marked.

    Args:
      page: where it goes.
      names: metric -> what to call it, and which extreme is better.
      runs: name of a run -> its metrics.
    """
    extreme, arrows = {"low": min, "high": max}, {"low": "↓ ", "high": "↑ ", None: ""}
    rows: list[list[Cell]] = []
    for metric, (label, better) in names.items():
        if all(metric in metrics for metrics in runs.values()):
            values = [metrics[metric] for metrics in runs.values()]
            best = extreme[better](values) if better else None
            cells = [(number(value), value == best) for value in values]
            rows.append([arrows[better] + label, *cells])
    page.table(["", *runs], rows)
