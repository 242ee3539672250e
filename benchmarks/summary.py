"""The measurements as Markdown."""

import dataclasses
import json
import pathlib
import re

from benchmarks.measure import Row

BENCHMARKS = (
    "step",
    "memory",
    "startup",
    "scaling",
    "profile",
    "convolutions",
    "render",
    "data",
    "stream",
    "resize_quality",
    "transforms",
    "estimators",
    "canonical",
    "features",
    "evaluation",
    "probe",
)


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| Work | ours | reference | ratio | to reach |", "|---|---|---|---|---|"]
    for row in rows:
        theirs = "–" if row.theirs is None else f"{row.theirs:.4g} {row.unit} ({row.reference})"
        ratio = "–" if row.ratio is None else f"{row.ratio:.2f}×"
        lines.append(
            f"| {row.work} | {row.ours:.4g} {row.unit} | {theirs} | {ratio} | {row.target} |"
        )
    return "\n".join(lines)


def reached(row: Row) -> bool | None:
    """Whether a row reaches its target; None if it has none."""
    found = re.match(r"([≥≤<]?) ?([\d.]+)", row.target)
    if found is None:
        return None
    sign, wanted = found[1], float(found[2])
    if sign == "≥":
        return row.ratio is not None and row.ratio >= wanted
    return row.ours < wanted if sign == "<" else row.ours <= wanted


def against_targets(out: pathlib.Path, *, met: bool) -> str:
    """All rows of a folder that reach their target, or those that miss it, as Markdown.

    Args:
      out: folder of the NAME.json files.
      met: which of them.
    """
    found = [row for name in BENCHMARKS for row in _rows(out / f"{name}.json")]
    return table([row for row in found if reached(row) is met])


def _rows(path: pathlib.Path) -> list[Row]:
    if not path.exists():
        return []
    fields = {field.name for field in dataclasses.fields(Row)}
    rows = json.loads(path.read_text())["rows"]
    return [Row(**{k: v for k, v in row.items() if k in fields}) for row in rows]


def summary(out: pathlib.Path) -> str:
    """All results in a folder, with their plots, as one Markdown page."""
    parts = ["# What was measured\n\nWritten by `python -m benchmarks.run`; nothing is typed in.\n"]
    for name in BENCHMARKS:
        path = out / f"{name}.json"
        if not path.exists():
            continue
        record = json.loads(path.read_text())
        machine = ", ".join(f"{key} {value}" for key, value in record["machine"].items())
        parts.append(f"## {name}\n\n{machine}; code {record.get('code', 'unknown')}\n")
        parts.append(table(_rows(path)) + "\n")
        if (out / f"{name}.png").exists():
            parts.append(f"![{name}]({name}.png)\n")
    return "\n".join(parts)
