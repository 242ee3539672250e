"""Tries faults on real training processes and writes what survived.

    python -m experiments.reliability [--only=killed,disk] [--out=docs/reliability.md]

Figures go to the JSON file beside the page, family by family; the page is written from it, so
families can be tried one at a time. All take about half an hour on two cores, and `soak` another
half.
"""

import functools
import json
import pathlib
import tempfile
from collections.abc import Callable

from absl import flags

from experiments.reliability.damage import damage
from experiments.reliability.devices import devices
from experiments.reliability.disk import disk
from experiments.reliability.imports import imports
from experiments.reliability.killed import determinism, killed, preempted
from experiments.reliability.pictures import pictures
from experiments.reliability.processes import processes
from experiments.reliability.report import page
from experiments.reliability.soak import soak
from experiments.reliability.weights import weights
from invclr_jax import cli
from invclr_jax.evaluation.results import code_version
from invclr_jax.files import write_atomically

_OUT = flags.DEFINE_string("out", "docs/reliability.md", "The page; figures go beside it.")
_ONLY = flags.DEFINE_list("only", [], "Families of faults, comma separated; all if not given.")
_KILLS = flags.DEFINE_integer("kills", 20, "SIGKILLs to try.", lower_bound=1)
_MINUTES = flags.DEFINE_float("minutes", 30.0, "Length of the soak.", lower_bound=0.1)


def families() -> dict[str, Callable[[pathlib.Path], dict]]:
    """Every family of faults by name."""
    return {
        "killed": functools.partial(killed, kills=_KILLS.value),
        "preempted": preempted,
        "disk": disk,
        "damage": damage,
        "weights": weights,
        "imports": imports,
        "pictures": pictures,
        "devices": devices,
        "determinism": determinism,
        "processes": processes,
        "soak": functools.partial(soak, minutes=_MINUTES.value),
    }


def main() -> int:
    """Tries the families; returns 1 if anything was lost."""
    known = families()
    unknown = [name for name in _ONLY.value if name not in known]
    if unknown:
        raise ValueError(f"--only={unknown[0]}: use some of {', '.join(known)}")
    out = pathlib.Path(_OUT.value)
    lost = 0
    with tempfile.TemporaryDirectory() as folder:  # shared: some compare with the same run
        for name in _ONLY.value or known:
            figures = known[name](pathlib.Path(folder))
            print(f"{name}: {json.dumps(figures)}", flush=True)
            _write(out, name, {"figures": figures, "code_version": code_version()})
            lost += figures["lost"]
    print(f"the figures are in {out}")
    return 1 if lost else 0


def _write(out: pathlib.Path, name: str, record: dict) -> None:
    """Puts a family's record into the JSON file and rewrites the page."""
    path = out.with_suffix(".json")
    records = json.loads(path.read_text()) if path.exists() else {}
    records[name] = record
    for target, text in (
        (path, json.dumps(records, indent=1, sort_keys=True) + "\n"),
        (out, page(records)),
    ):
        write_atomically(target, text)


if __name__ == "__main__":
    cli.run(main)
