"""Generates the tables in documents from the records, so that nobody types them.

    python -m experiments.documents README.md docs/findings.md

Whatever is between `<!-- table: overview -->` and `<!-- end -->` is replaced by the tables of that
experiment at cpu scale; `<!-- table: overview 0 -->` gives only the first of them, counted from 0,
and `<!-- table: overview 0 columns 0 2 -->` some of its columns. `<!-- table: mechanism -->` and
the like (`MEASURED`) give what those modules measured on checkpoints,
`<!-- table: encoders -->` the scores of encoders that come with the package, and
`<!-- table: targets_met -->` and `<!-- table: targets_missed -->` what benchmarks measured.
"""

import json
import pathlib
import re
from collections.abc import Callable, Mapping

from absl import flags

from benchmarks import summary
from experiments import directions, fair_tables, jumps, mcnemar, method_tables, records, ship
from experiments.figures import EXPERIMENTS
from experiments.records import Records
from experiments.tables import Table
from invclr_jax import cli
from invclr_jax.files import write_atomically

_RESULTS = flags.DEFINE_string("results", "experiments/results", "Folder of the records.")
_ENCODERS = flags.DEFINE_string(
    "encoders", "experiments/results/encoders", "Folder of the records of shipped encoders."
)
_BENCHMARKS = flags.DEFINE_string("benchmarks", "benchmarks/results", "Folder of the benchmarks.")

SCREENED = {
    "views": "thousand views",
    "seconds": "seconds",
    "knn": "kNN, plain, %",
    "patches": "kNN, mean of 6 patches, %",
}


def _of_runs(tabulate: Callable[..., str], **options) -> Callable[[Mapping], str]:
    return lambda record: tabulate(record["runs"], **options)


def _penalties(record: Mapping) -> str:
    """Differences by measure, and McNemar's test for each seed."""
    tables = fair_tables.by_measure(record["runs"]), mcnemar.table(record["hits"])
    return "\n".join(table.markdown() for table in tables)


MEASURED: dict[str, tuple[str, Callable[[Mapping], str]]] = {
    "mechanism": ("mechanism", _of_runs(jumps.table)),
    "directions": ("directions", _of_runs(jumps.table, columns=directions.COLUMNS)),
    "all_rows": ("all_rows", _of_runs(fair_tables.markdown)),
    "methods": ("methods/main_rows", _of_runs(method_tables.markdown)),
    "screening": ("screening", _of_runs(jumps.table, columns=SCREENED)),
    "patches": ("patches/all_rows", _penalties),
}
"""Measurements on checkpoints: their file, and how it becomes a table."""

_PLACE = re.compile(
    r"(<!-- table: (\S+)(?: (\d+)(?: columns ([\d ]+))?)? -->\n).*?(<!-- end -->)", re.DOTALL
)


def fill(text: str, stored: Records, measured: Mapping[str, str]) -> str:
    """The document with every marked place filled in.

    Args:
      text: Markdown.
      stored: the records to tabulate.
      measured: tables of `experiments.mechanism` and the like, by name.
    """

    def filled(match: re.Match) -> str:
        name, columns = match[2], [int(word) for word in (match[4] or "").split()]
        if name in measured:
            tables = [measured[name] + "\n"]
        else:
            chosen = _tables(name, match[3], stored)
            tables = [(t.narrowed(columns) if columns else t).markdown() for t in chosen]
        return match[1] + "\n" + "\n".join(tables) + "\n" + match[5]

    return _PLACE.sub(filled, text)


def _tables(name: str, index: str | None, stored: Records) -> list[Table]:
    if name not in EXPERIMENTS:
        raise ValueError(f"no experiment {name!r}: use one of {', '.join(EXPERIMENTS)}")
    tables = EXPERIMENTS[name].tables(stored)
    if index is not None and int(index) >= len(tables):
        raise ValueError(f"{name} has {len(tables)} tables, none with the number {index}")
    return tables if index is None else [tables[int(index)]]


def main(*paths: str) -> None:
    """Fills in the documents."""
    results = pathlib.Path(_RESULTS.value)
    stored = records.load(results, "cpu")
    measured = {
        name: tabulate(json.loads(path.read_text()))
        for name, (file, tabulate) in MEASURED.items()
        if (path := results / "cpu" / f"{file}.json").exists()
    }
    measured["encoders"] = ship.table(pathlib.Path(_ENCODERS.value))
    for name, met in (("targets_met", True), ("targets_missed", False)):
        measured[name] = summary.against_targets(pathlib.Path(_BENCHMARKS.value), met=met)
    for path in map(pathlib.Path, paths):
        write_atomically(path, fill(path.read_text(), stored, measured))
        print(f"{path}: {len(_PLACE.findall(path.read_text()))} places filled")


if __name__ == "__main__":
    cli.run(main, max_arguments=10)
