"""Generates the tables in documents from the records, so that nobody types them.

    python -m experiments.documents README.md docs/*.md

Whatever is between `<!-- table: overview -->` and `<!-- end -->` is replaced by the tables of that
experiment at cpu scale; `<!-- table: overview 0 -->` gives only the first of them, counted from 0,
and `<!-- table: overview 0 columns 0 2 rows 0 1 -->` some of its columns and rows. With
`overview of replication` records come from that folder in `--results`. `<!-- table: mechanism -->`
and the like (`MEASURED`) give what those modules measured on checkpoints,
`<!-- table: encoders -->` the scores of encoders that come with the package, and
`<!-- table: targets_met -->` and `<!-- table: targets_missed -->` what benchmarks measured.
"""

import dataclasses
import functools
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
    r"(?P<start><!-- table: (?P<name>\S+)(?: of (?P<folder>\S+))?"
    r"(?: (?P<index>\d+)(?: columns (?P<columns>[\d ]+?))?(?: rows (?P<rows>[\d ]+?))?)? -->\n)"
    r".*?(?P<end><!-- end -->)",
    re.DOTALL,
)


@dataclasses.dataclass(frozen=True)
class Source:
    """What tables are made from.

    Attributes:
      stored: the records to tabulate.
      measured: tables of `experiments.mechanism` and the like, by name.
    """

    stored: Records
    measured: Mapping[str, str]


def fill(text: str, source: Callable[[str], Source]) -> str:
    """The document with every marked place filled in.

    Args:
      text: Markdown.
      source: folder -> what it has; the name is empty where a place names none.
    """

    def filled(match: re.Match) -> str:
        name = match["name"]
        columns, rows = (
            [int(n) for n in (match[key] or "").split()] for key in ("columns", "rows")
        )
        found = source(match["folder"] or "")
        if name in found.measured:
            tables = [found.measured[name] + "\n"]
        else:
            chosen = _tables(name, match["index"], found.stored)
            tables = [table.narrowed(columns, rows).markdown() for table in chosen]
        return match["start"] + "\n" + "\n".join(tables) + "\n" + match["end"]

    return _PLACE.sub(filled, text)


def _tables(name: str, index: str | None, stored: Records) -> list[Table]:
    if name not in EXPERIMENTS:
        raise ValueError(f"no experiment {name!r}: use one of {', '.join(EXPERIMENTS)}")
    tables = EXPERIMENTS[name].tables(stored)
    if index is not None and int(index) >= len(tables):
        raise ValueError(f"{name} has {len(tables)} tables, none with the number {index}")
    return tables if index is None else [tables[int(index)]]


def read(results: pathlib.Path) -> Source:
    """What a folder of records has.

    Args:
      results: the folder; it has one of each scale.
    """
    measured = {
        name: tabulate(json.loads(path.read_text()))
        for name, (file, tabulate) in MEASURED.items()
        if (path := results / "cpu" / f"{file}.json").exists()
    }
    return Source(records.load(results, "cpu"), measured)


def sources(
    results: pathlib.Path, encoders: pathlib.Path, benchmarks: pathlib.Path
) -> Callable[[str], Source]:
    """The source of a place by its folder; each is read once.

    Args:
      results: of all records.
      encoders: records of shipped encoders.
      benchmarks: what benchmarks measured.
    """
    everywhere = {"encoders": ship.table(encoders)}
    for name, met in (("targets_met", True), ("targets_missed", False)):
        everywhere[name] = summary.against_targets(benchmarks, met=met)

    @functools.cache
    def source(folder: str) -> Source:
        found = read(results / folder)
        return Source(found.stored, everywhere | dict(found.measured))

    return source


def main(*paths: str) -> None:
    """Fills in the documents."""
    folders = (_RESULTS.value, _ENCODERS.value, _BENCHMARKS.value)
    source = sources(*map(pathlib.Path, folders))
    for path in map(pathlib.Path, paths):
        text = path.read_text()
        if places := len(_PLACE.findall(text)):
            write_atomically(path, fill(text, source))
            print(f"{path}: {places} places filled")


if __name__ == "__main__":
    cli.run(main, max_arguments=50)
