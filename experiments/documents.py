"""Generates the tables in documents from the records, so that nobody types them.

    python -m experiments.documents README.md docs/findings.md

Whatever stands between `<!-- table: overview -->` and `<!-- end -->` becomes the tables of that
experiment at cpu scale; `<!-- table: overview 0 -->` is the first of them only, counted from 0, and
`<!-- table: mechanism -->` and its like (`MEASURED`) what those modules measured on checkpoints.
"""

import json
import pathlib
import re
from collections.abc import Mapping

from absl import flags

from experiments import all_rows, directions, jumps, records
from experiments.figures import EXPERIMENTS
from experiments.records import Records
from invclr_jax import cli
from invclr_jax.files import write_atomically

_RESULTS = flags.DEFINE_string("results", "experiments/results", "Folder of the records.")

MEASURED = {
    "mechanism": jumps.COLUMNS,
    "directions": directions.COLUMNS,
    "all_rows": all_rows.COLUMNS,
}
"""Files of measurements on checkpoints and the columns of their tables."""

_PLACE = re.compile(r"(<!-- table: (\S+)(?: (\d+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(text: str, stored: Records, measured: Mapping[str, str]) -> str:
    """The document with every marked place filled in.

    Args:
      text: Markdown.
      stored: the records to tabulate.
      measured: tables of `experiments.mechanism` and its like, by their names.
    """

    def filled(match: re.Match) -> str:
        name, index = match[2], match[3]
        tables = [measured[name] + "\n"] if name in measured else _tables(name, index, stored)
        return match[1] + "\n" + "\n".join(tables) + "\n" + match[4]

    return _PLACE.sub(filled, text)


def _tables(name: str, index: str | None, stored: Records) -> list[str]:
    if name not in EXPERIMENTS:
        raise ValueError(f"no experiment {name!r}: use one of {', '.join(EXPERIMENTS)}")
    tables = EXPERIMENTS[name].tables(stored)
    if index is not None and int(index) >= len(tables):
        raise ValueError(f"{name} has {len(tables)} tables, none with the number {index}")
    chosen = tables if index is None else [tables[int(index)]]
    return [table.markdown() for table in chosen]


def main(*paths: str) -> None:
    """Fills documents in."""
    results = pathlib.Path(_RESULTS.value)
    stored = records.load(results, "cpu")
    measured = {
        name: jumps.table(json.loads(path.read_text())["runs"], columns)
        for name, columns in MEASURED.items()
        if (path := results / "cpu" / f"{name}.json").exists()
    }
    for path in map(pathlib.Path, paths):
        write_atomically(path, fill(path.read_text(), stored, measured))
        print(f"{path}: {len(_PLACE.findall(path.read_text()))} places filled")


if __name__ == "__main__":
    cli.run(main, max_arguments=10)
