"""Puts measured tables into documents, so that nobody types them.

    python -m experiments.documents README.md docs/findings.md

Whatever stands between `<!-- table: overview -->` and `<!-- end -->` becomes the tables of that
experiment at cpu scale; `<!-- table: overview 0 -->` is the first of them only, counted from 0.
"""

import pathlib
import re

from absl import flags

from experiments import records
from experiments.figures import EXPERIMENTS
from experiments.records import Records
from invclr_jax import cli

_RESULTS = flags.DEFINE_string("results", "experiments/results", "Folder of the records.")

_PLACE = re.compile(r"(<!-- table: (\S+)(?: (\d+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(text: str, found: Records) -> str:
    """The document with every marked place filled in.

    Args:
      text: Markdown.
      found: the records to tabulate.
    """
    return _PLACE.sub(lambda match: match[1] + _tables(match, found) + match[4], text)


def _tables(match: re.Match, found: Records) -> str:
    name, index = match[2], match[3]
    if name not in EXPERIMENTS:
        raise ValueError(f"no experiment {name!r}: use one of {', '.join(EXPERIMENTS)}")
    tables = EXPERIMENTS[name].tables(found)
    if index is not None and int(index) >= len(tables):
        raise ValueError(f"{name} has {len(tables)} tables, none with the number {index}")
    chosen = tables if index is None else [tables[int(index)]]
    return "\n" + "\n".join(table.markdown() for table in chosen) + "\n"


def main(*paths: str) -> None:
    """Fills documents in."""
    found = records.load(pathlib.Path(_RESULTS.value), "cpu")
    for path in map(pathlib.Path, paths):
        path.write_text(fill(path.read_text(), found))
        print(f"{path}: {len(_PLACE.findall(path.read_text()))} places filled")


if __name__ == "__main__":
    cli.run(main, max_arguments=10)
