"""The measurements as Markdown."""

import dataclasses
import json
import pathlib

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


def summary(out: pathlib.Path) -> str:
    """All results in a folder, with their plots, as one Markdown page."""
    parts = ["# What was measured\n\nWritten by `python -m benchmarks.run`; nothing is typed in.\n"]
    for name in BENCHMARKS:
        path = out / f"{name}.json"
        if not path.exists():
            continue
        record = json.loads(path.read_text())
        fields = {field.name for field in dataclasses.fields(Row)}
        rows = [Row(**{k: v for k, v in row.items() if k in fields}) for row in record["rows"]]
        machine = ", ".join(f"{key} {value}" for key, value in record["machine"].items())
        parts.append(f"## {name}\n\n{machine}; code {record.get('code', 'unknown')}\n")
        parts.append(table(rows) + "\n")
        if (out / f"{name}.png").exists():
            parts.append(f"![{name}]({name}.png)\n")
    return "\n".join(parts)
