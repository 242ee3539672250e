"""Metrics as compact tables: one row per M, fraction or strength, one column per measure.

Names are placed by their parts: the last is the measure; kinds of probe, such as `kept` and
`refitted`, stand beside it; the rest is the row. Details of the solver are only in the file.
"""

import math
from collections.abc import Mapping, Sequence

from invclr_jax.evaluation.probes import MAX_ITERATIONS

SOLVER = ("iterations", "grad_norm")
KINDS = ("kept", "refitted", "averaging", "ensembling", "selected", "knn")

LARGE_GRADIENT = 1e-3
"""A fit that ends with a longer gradient is reported; converged ones are below 1e-5."""

Grid = dict[str, dict[str, float]]
"""Row -> column -> value."""


def grid(metrics: Mapping[str, float]) -> Grid:
    """Metrics by row and column; parts that all rows share are left out."""
    placed = [(*_place(name), value) for name, value in metrics.items()]
    placed = [(row, column, value) for row, column, value in placed if column[-1] not in SOLVER]
    if any(column[0] in KINDS and column[-1] == "total" for _, column, _ in placed):
        placed = [entry for entry in placed if entry[1][-1] == "total"]  # the factors: in the file
    rows = {row for row, _, _ in placed}
    shared = set.intersection(*map(set, rows)) if rows else set()
    cells: Grid = {}
    for row, column, value in placed:
        label = row[-1] if len(rows) == 1 else "/".join(p for p in row if p not in shared)
        cells.setdefault(label, {})[" ".join(column)] = value
    return cells


def _place(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    *parts, measure = name.split("/")
    kinds = [part for part in parts if part in KINDS or part.startswith("severity=")]
    if "no_shift" in parts:
        kinds = ["kept"]  # the kept probe where it was fitted
    said = {*kinds, "mse"} | ({"probe", "lbfgs", "ridge"} if parts[0] == "probe" else set())
    row = tuple(part for part in parts if part not in said and not part.startswith("k="))
    return row, (*kinds, measure)


def table(metrics: Mapping[str, float], test_rows: int) -> str:
    """Metrics as aligned text; a single row is turned into lines.

    Args:
      metrics: of one protocol.
      test_rows: that accuracies were measured on; decides their standard errors.
    """
    cells = grid(metrics)
    if len(cells) == 1:
        ((label, row),) = cells.items()
        lines = [[name, _text(name, value, test_rows)] for name, value in row.items()]
        return _aligned([[label, ""], *lines] if "=" in label else lines)
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    lines = [["", *(_heading(column) for column in columns)]]
    for label, row in cells.items():
        texts = [_text(c, row[c], test_rows) if c in row else "" for c in columns]
        lines.append([label, *texts])
    return _aligned(lines)


def _heading(column: str) -> str:
    """Five severities of the same measure would not fit beside each other."""
    return column.removesuffix(" accuracy") if column.startswith("severity=") else column


def binomial_error(accuracy: float, rows: int) -> float:
    """Standard error of an accuracy in percent, by the number of rows it was measured on."""
    share = accuracy / 100
    return 100 * math.sqrt(share * (1 - share) / rows)


def _text(column: str, value: float, test_rows: int) -> str:
    if column.endswith("accuracy"):
        return f"{value:.2f} ± {binomial_error(value, test_rows):.2f}"
    return f"{value:.4g}"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = (
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
    return "\n".join(f"  {text}".rstrip() for text in texts)


def warnings(metrics: Mapping[str, float]) -> list[str]:
    """One sentence for each fit that did not converge."""
    sentences = []
    for name, norm in metrics.items():
        prefix, _, measure = name.rpartition("/")
        if measure != "grad_norm":
            continue
        iterations = metrics[f"{prefix}/iterations"]
        if iterations >= MAX_ITERATIONS or not norm <= LARGE_GRADIENT:
            sentences.append(
                f"{prefix} did not converge: gradient norm {norm:.2g} after {iterations:.0f} steps"
            )
    return sentences
