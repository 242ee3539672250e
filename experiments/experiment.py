"""What an experiment is, and how its table and plot are written."""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Sequence

from experiments.plots import Panel, compose, png
from experiments.records import Records
from experiments.tables import Table
from invclr_jax.files import write_atomically


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One result of the paper, or one of our own questions.

    Attributes:
      title: its heading.
      text: what the paper found, or what we ask.
      runs: scale -> the runs it needs, as `data set/name`.
      tables: its tables; empty if nothing has been measured yet.
      panels: the parts of its plot; likewise.
    """

    title: str
    text: str
    runs: Callable[[str], Sequence[str]]
    tables: Callable[[Records], list[Table]]
    panels: Callable[[Records], list[Panel]]


def write(experiment: Experiment, name: str, records: Records, folder: pathlib.Path) -> bool:
    """Writes `name.md`, `name.json` and `name.png`.

    Args:
      experiment: what to write.
      name: of the files.
      records: of one scale.
      folder: where they go.

    Returns:
      Whether there was anything to write.
    """
    tables, panels = experiment.tables(records), experiment.panels(records)
    if not tables and not panels:
        return False
    parts = [f"# {experiment.title}", experiment.text, *(table.markdown() for table in tables)]
    if panels:
        parts.append(f"![{experiment.title}]({name}.png)")
        write_atomically(folder / f"{name}.png", png(compose(panels), dpi=100))
    write_atomically(folder / f"{name}.md", "\n\n".join(parts) + "\n")
    stored = {"title": experiment.title, "tables": [table.to_json() for table in tables]}
    write_atomically(folder / f"{name}.json", json.dumps(stored, indent=1) + "\n")
    return True
