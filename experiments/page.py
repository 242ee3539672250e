"""Self-contained HTML pages: text, tables and plots in one file that opens anywhere."""

import base64
import html
import io
import os
import pathlib
from collections.abc import Mapping, Sequence

import matplotlib

matplotlib.use("Agg")

from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { margin-top: 2.2rem; font-size: 1.25rem; }
img { max-width: 100%; height: auto; background: #fff; border-radius: 6px; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; } thead { background: var(--soft); }
code { background: var(--soft); padding: .1em .3em; border-radius: 4px; }
"""


class Page:
    """Collects the parts of a page and writes it.

    Args:
      title: heading of the page.
    """

    def __init__(self, title: str):
        self._title, self._parts = title, [f"<h1>{html.escape(title)}</h1>"]

    def heading(self, text: str) -> None:
        """Starts a section."""
        self._parts.append(f"<h2>{html.escape(text)}</h2>")

    def text(self, sentences: str) -> None:
        """Adds a paragraph."""
        self._parts.append(f"<p>{html.escape(sentences)}</p>")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Adds a table; the first column names the rows."""
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        self._parts.append(
            f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
            "</table></div>"
        )

    def figure(self, figure: Figure, description: str) -> None:
        """Adds a plot."""
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
        data = base64.b64encode(buffer.getvalue()).decode()
        alt = html.escape(description, quote=True)
        self._parts.append(f'<img alt="{alt}" src="data:image/png;base64,{data}">')

    def write(self, path: pathlib.Path) -> None:
        """Writes the page under a temporary name and renames it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        page = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(self._title)}</title><style>{STYLE}</style></head><body>"
            + "\n".join(self._parts)
            + "</body></html>\n"
        )
        temporary = path.with_suffix(".tmp")
        temporary.write_text(page)
        os.replace(temporary, path)


def number(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}"


def comparison(
    page: Page, names: Mapping[str, str], runs: Mapping[str, Mapping[str, float]]
) -> None:
    """A table with a row for each metric and a column for each run.

    Args:
      page: where it goes.
      names: metric -> what to call it.
      runs: name of a run -> its metrics.
    """
    rows = [
        [label, *(number(metrics[metric]) for metrics in runs.values())]
        for metric, label in names.items()
        if all(metric in metrics for metrics in runs.values())
    ]
    page.table(["", *runs], rows)
