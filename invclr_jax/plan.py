"""Tells what a run needs on hardware that is not here.

    invclr plan --config=cifar10 --topology=v5e:2x4 --out=plan.json
    invclr plan --config=cifar10 --topology=a100:8
    invclr plan --config=cifar10

Compiles the run's own training steps, plain and penalised, and shows memory, FLOPs, messages
between devices and the time that they take at least. TPU slices (v4, v5e, v5p, v6e) are compiled by
the TPU compiler, which needs no TPU: pip install "invclr_jax[tpu]". GPUs (a100, h100, mi300x) are
estimated from what the CPU compiler counts. Without --topology: the devices of this machine.
Compiling for TPUs takes minutes for the paper's encoders, with --effort=least a fraction of that:
the compiler then optimises as little as it can. docs/accelerators.md compares the figures.
"""

import json
import pathlib

from absl import flags
from ml_collections import config_flags

from invclr_jax import cli
from invclr_jax.files import write_atomically
from invclr_jax.planning import roofline

_CONFIG = config_flags.DEFINE_config_file("config", None, "The run: a shipped name, or a file.")
_TOPOLOGY = flags.DEFINE_string("topology", None, "TPU slice or GPUs; none for this machine.")
_OUT = flags.DEFINE_string("out", None, "JSON file for all numbers.")
_PROGRAMS = flags.DEFINE_string("programs", None, "Folder for the compiled programs' texts.")
_EFFICIENCY = flags.DEFINE_float(
    "efficiency", roofline.EFFICIENCY, "Part of the roofline's speed to expect.", 0.01, 1.0
)
_EFFORT = flags.DEFINE_enum(
    "effort", "usual", ["usual", "least"], "How much the TPU compiler optimises."
)
flags.mark_flag_as_required("config")


def main() -> int:
    """Plans, prints a table and writes the record."""
    from invclr_jax.planning import machines, run
    from invclr_jax.planning.report import table

    def keep(name: str, text: str) -> None:
        if _PROGRAMS.value:
            write_atomically(pathlib.Path(_PROGRAMS.value) / f"{name}.hlo", text)

    machines.prepare(_TOPOLOGY.value)
    job = run.lower(_CONFIG.value, _TOPOLOGY.value)
    efficiency, effort = _EFFICIENCY.value, _EFFORT.value
    record = run.compile_job(job, efficiency=efficiency, effort=effort, keep=keep).record()
    print(table(record))
    if _OUT.value:
        write_atomically(_OUT.value, json.dumps(record, indent=2) + "\n")
        print(f"all numbers are in {_OUT.value}")
    return 0


def start() -> None:
    """Runs the command."""
    cli.run(main)


if __name__ == "__main__":
    start()
