"""What the evaluate command prints, where its files go, and how it ends."""

import pathlib
import sys

from invclr_jax.evaluation import plots, tables
from invclr_jax.evaluation.outcomes import Outcome
from invclr_jax.files import write_atomically


def show(name: str, outcome: Outcome, test_rows: int) -> None:
    """Prints the outcome of a protocol: a table, or why there is none."""
    note = {"measured": "", "from the file": " (from the file)"}.get(outcome.status, "")
    print(f"\n{name}{note}")
    if outcome.reason:
        print(f"  {outcome.status}: {outcome.reason}", flush=True)
        return
    print(tables.table(outcome.metrics, test_rows), flush=True)
    for sentence in tables.warnings(outcome.metrics):
        print(f"  warning: {sentence}", flush=True)


def results_folder(workdir: str) -> pathlib.Path:
    """Inside a run; for an encoder that ships with the package, under the current folder.

    A folder of the encoder's own name would hide the encoder.
    """
    folder = pathlib.Path(workdir)
    return folder / "results" if folder.is_dir() else pathlib.Path("results") / folder.name


def finish(outcomes: dict[str, Outcome], path: pathlib.Path) -> int:
    """Writes the plot, says where everything is, and returns the exit code.

    Args:
      outcomes: by protocol.
      path: the JSON file; the plot goes beside it.

    Returns:
      1 if a protocol failed, else 0: one that does not apply is not a failure.
    """
    picture = plots.picture({name: outcome.metrics for name, outcome in outcomes.items()})
    if picture is not None:
        write_atomically(path.with_suffix(".png"), picture)
        print(f"\nthe plot is {path.with_suffix('.png')}")
    if path.exists():
        print(f"all numbers are in {path}")
    failed = [name for name, outcome in outcomes.items() if outcome.status == "failed"]
    if failed:
        print(
            f"error: {len(failed)} of {len(outcomes)} protocols failed: {', '.join(failed)}",
            file=sys.stderr,
        )
    return 1 if failed else 0
