"""Plans the paper's runs, and all methods, on TPU slices and GPUs; fills docs/accelerators.md.

    python -m experiments.accelerators --runs=paper,methods,imagenet --topologies=v5e:2x4
    python -m experiments.accelerators --runs=spirograph --topologies=v4:2x2x1,v5p:2x2x1,a100:8
    python -m experiments.accelerators --runs=spirograph --effort=usual
    python -m experiments.accelerators --runs=

The TPU compiler optimises as little as it can unless --effort=usual, which takes ten times as long;
the page compares plans of both kinds. Each plan is a record in experiments/results/accelerators,
written after each compiled program. One whose program has not changed is not compiled again, so an
interrupted command resumes. The tables are made from all records, even if --runs is empty, and name
the plans that are missing.
"""

import dataclasses
import json
import pathlib
import subprocess

from absl import flags

from experiments import accelerator_page as page
from invclr_jax import cli
from invclr_jax import config as configuration
from invclr_jax.files import write_atomically
from invclr_jax.planning import machines, program, run
from invclr_jax.planning.report import programs

RUNS = {
    "paper": (
        "spirograph",
        "cifar10",
        "cifar100",
        "moco_cifar100:resnet18",
        "moco_cifar100:resnet50",
    ),
    "methods": tuple(
        f"cifar_methods:{name}"
        for name in ("simclr", "byol", "moco_v3", "barlow_twins", "vicreg", "simsiam", "emp")
    ),
    "imagenet": ("imagenet",),
}
FOLDER = pathlib.Path("experiments/results/accelerators")
PAGE = pathlib.Path("docs/accelerators.md")

_RUNS = flags.DEFINE_list("runs", ["paper"], "paper, methods, or names of configs.")
_TOPOLOGIES = flags.DEFINE_list("topologies", ["v5e:2x4"], "As for `invclr plan`.")
_EFFORT = flags.DEFINE_enum("effort", "least", list(program.EFFORTS), "Of the TPU compiler.")
_PROGRAMS = flags.DEFINE_string("programs", None, "Folder for the compiled programs' texts.")


def record_path(name: str, topology: str, effort: str) -> pathlib.Path:
    """Where a plan is recorded."""
    usual = "-usual" if effort == "usual" else ""
    return FOLDER / f"{name.replace(':', '-')}@{topology.replace(':', '-')}{usual}.json"


def plan(name: str, topology: str, effort: str) -> None:
    """Plans one run on one machine, unless its record already exists."""
    config = configuration.load(name)
    if name == "cifar_methods:emp":
        config.batch_size = 104  # 100 does not divide over eight devices
    job, path = run.lower(config, topology), record_path(name, topology, effort)

    def keep(step: str, text: str) -> None:
        if _PROGRAMS.value:
            write_atomically(pathlib.Path(_PROGRAMS.value) / path.stem / f"{step}.hlo", text)

    for count in range(1, len(job.lowered) + 1):
        first = dict(list(job.lowered.items())[:count])
        known = programs(json.loads(path.read_text())) if path.exists() else {}
        if all(program.fingerprint(lowered) in known for lowered in first.values()):
            continue
        part = dataclasses.replace(job, lowered=first)
        report = run.compile_job(part, effort=effort, keep=keep, known=known)
        record = {"config": name, "commit": _commit(), **report.record()}
        write_atomically(path, json.dumps(record, indent=2) + "\n")
    print(f"{path} written", flush=True)


def _commit() -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Plans what is missing and writes the page."""
    names = [name for group in _RUNS.value for name in RUNS.get(group, (group,))]
    for topology in _TOPOLOGIES.value:
        machines.prepare(topology)
    for topology in _TOPOLOGIES.value:
        for name in names:
            plan(name, topology, _EFFORT.value)
    records = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    names = [name for group in RUNS.values() for name in group]
    write_atomically(PAGE, page.fill(PAGE.read_text(), records, names))
    return 0


if __name__ == "__main__":
    cli.run(main)
