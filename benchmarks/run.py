"""Measures our code against PyTorch: `python -m benchmarks.run [--only=render,step]`.

Each benchmark is a module of this package with a function `rows(repeats) -> list[Row]` and possibly
`plot(rows, path)`. Ratios come from interleaved turns of one run, so they can be compared between
machines; seconds cannot.
"""

import dataclasses
import importlib
import importlib.metadata
import json
import os
import pathlib
import platform
import types

import jax
from absl import app, flags

from benchmarks.measure import has_torch
from benchmarks.summary import BENCHMARKS, summary, table
from invclr_jax import cpu
from invclr_jax.evaluation.results import code_version
from invclr_jax.native import library

REFERENCES = ("torch", "sklearn", "kornia")
BUSY = 0.5
"""Load average of the last minute above which timings are doubtful."""

_ONLY = flags.DEFINE_list("only", list(BENCHMARKS), "Which benchmarks to run, by module name.")
_REPEATS = flags.DEFINE_integer("repeats", 5, "Measured turns of each contender.", lower_bound=1)
_OUT = flags.DEFINE_string("out", "benchmarks/results", "Folder for the NAME.json files and plots.")


def _machine() -> dict[str, str | float | None]:
    """What the numbers depend on; warns if the machine is busy."""
    load = os.getloadavg()[0]
    if load > BUSY:
        print(f"the machine is busy (load {load:.1f}): medians will not mean much")
    torch = importlib.metadata.version("torch") if has_torch() else None
    return {
        "device": jax.devices()[0].device_kind,
        "devices": jax.device_count(),
        "cores": os.cpu_count(),
        "load_at_start": load,
        "jax": jax.__version__,
        "torch": torch,
        "python": platform.python_version(),
        "library": library.library(),
    }


def _load(name: str) -> types.ModuleType | None:
    """The benchmark's module; None, with a message, if its reference is not installed."""
    try:
        return importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if error.name not in REFERENCES:
            raise
        print(f"{name} is skipped: it needs {error.name}; pip install -e '.[benchmark]'")
        return None


def main(argv):
    """Runs the chosen benchmarks and writes their table and JSON."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}: did you mean --only={argv[1]}?")
    unknown = set(_ONLY.value) - set(BENCHMARKS)
    if unknown:
        raise app.UsageError(f"no benchmark {sorted(unknown)}: use some of {', '.join(BENCHMARKS)}")
    cpu.prepare()  # as our commands do; PyTorch benefits too
    machine = _machine()  # before we load it ourselves
    out = pathlib.Path(_OUT.value)
    out.mkdir(parents=True, exist_ok=True)
    for name in _ONLY.value:
        module = _load(name)
        if module is None:
            continue
        rows = module.rows(_REPEATS.value)
        print(f"\n{name}\n{table(rows)}", flush=True)
        record = {
            "machine": machine,
            "code": code_version(),
            "repeats": _REPEATS.value,
            "rows": [dataclasses.asdict(r) | {"ratio": r.ratio} for r in rows],
        }
        (out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
        if hasattr(module, "plot"):
            module.plot(rows, out / f"{name}.png")
        (out / "README.md").write_text(summary(out))


if __name__ == "__main__":
    app.run(main)
