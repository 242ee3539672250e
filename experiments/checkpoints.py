"""Measures, on the checkpoints of finished runs, what records do not hold.

    python -m experiments.checkpoints directions --workdir=runs/cpu/spirograph
    python -m experiments.checkpoints all_rows --workdir=runs/cpu/cifar10 --data_path=DIR
    python -m experiments.checkpoints main_rows --workdir=runs/cpu/methods --data_path=DIR

Results go to NAME.json beside the records and to a table; nothing is measured twice. What there is
to know about each run's training goes there too.
"""

import functools
import json
import pathlib
from collections.abc import Callable
from typing import Any

from absl import flags

from experiments import all_rows, directions, held_out, runner
from experiments.jumps import table
from invclr_jax import cli
from invclr_jax.checkpoint import Encoder, load_encoder
from invclr_jax.evaluation.results import code_version
from invclr_jax.files import write_atomically
from invclr_jax.training.writers import METRICS

MEASUREMENTS = {
    "directions": directions.COLUMNS,
    "all_rows": all_rows.COLUMNS,
    "main_rows": {name: all_rows.COLUMNS[name] for name in all_rows.BRIEF},
    "held_out": held_out.COLUMNS,
}


def measure_all(
    name: str, root: pathlib.Path, out: pathlib.Path, data_path: str | None = None
) -> dict[str, dict[str, float]]:
    """Measures the finished runs below a folder that are not in a file yet.

    Args:
      name: one of `MEASUREMENTS`.
      root: folder of NAME/seedK runs.
      out: the file.
      data_path: where CIFAR is.

    Returns:
      What the file has now, by `NAME/seedK`.
    """
    if name not in MEASUREMENTS:
        raise ValueError(f"no measurement {name!r}: use one of {', '.join(MEASUREMENTS)}")
    measures: dict[str, Callable[[Encoder], dict[str, Any]]] = {
        "directions": directions.measure,
        "all_rows": functools.partial(all_rows.measure, data_path=data_path),
        "main_rows": functools.partial(all_rows.measure_briefly, data_path=data_path),
        "held_out": functools.partial(held_out.measure, data_path=data_path),
    }
    record = json.loads(out.read_text()) if out.exists() else {}
    known, hits, trained = (record.get(key, {}) for key in ("runs", "hits", "training"))
    saved = (path for path in root.glob("**/seed*/checkpoints/*") if path.name.isdecimal())
    for folder in sorted({path.parents[1] for path in saved}):
        run = str(folder.relative_to(root))
        if run in known and run in trained:
            continue
        encoder = load_encoder(folder)
        if encoder.step < encoder.config.num_steps:
            continue
        trained[run] = training(folder, encoder)
        if run not in known:
            known[run] = measures[name](encoder)
            print(run, {k: round(v, 5) for k, v in known[run].items() if k != "hits"}, flush=True)
            record["code"] = code_version()
        if "hits" in known[run]:
            hits[run] = known[run].pop("hits")
        record |= {"runs": known, "training": trained} | ({"hits": hits} if hits else {})
        write_atomically(out, json.dumps(record, indent=1, sort_keys=True) + "\n")
    return known


def training(folder: pathlib.Path, encoder: Encoder) -> dict[str, Any]:
    """How a run was trained: configuration, code, seconds, and the curves of its log if it has one.

    Args:
      folder: of the run.
      encoder: its last.
    """
    config = encoder.config.to_dict()
    config["data"]["path"] = None  # says nothing on another machine
    found = {"config": config, "code": runner.note_version(folder)}
    if (folder / METRICS).exists():
        found["seconds"] = runner.training_seconds(folder, encoder.config.batch_size)
        found |= runner.curves(folder)
    return found


def main(name: str) -> int:
    """Measures and prints the table."""
    out = pathlib.Path(flags.FLAGS.out) / f"{name}.json"
    known = measure_all(name, pathlib.Path(flags.FLAGS.workdir), out, flags.FLAGS.data_path)
    print(table(known, MEASUREMENTS[name]))
    return 0


if __name__ == "__main__":
    # Defined here because other commands have flags of these names.
    flags.DEFINE_string("workdir", "runs/cpu/spirograph", "Folder of NAME/seedK runs.")
    flags.DEFINE_string("data_path", None, "Where CIFAR is, see invclr_jax.data.load.")
    flags.DEFINE_string("out", "experiments/results/cpu", "Folder of the results.")
    cli.run(main, max_arguments=1)
