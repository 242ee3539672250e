"""Trains an encoder.

    invclr train --config=spirograph_cpu --workdir=runs/spirograph

The config is the name of a shipped one or a file. Any of its keys can be overridden,
`--config.penalty.weight=0.01`; invclr_jax/config/keys.py lists them. A run resumes from the newest
checkpoint of its workdir. For several hosts, start the same command on each: under SLURM, Open MPI,
Kubernetes and on Cloud TPUs the processes find each other (--distributed on multi-host TPU VMs),
elsewhere give --coordinator, --num_processes and --process_id. docs/clusters.md has scripts.
"""

from absl import flags
from ml_collections import config_flags

from invclr_jax import cli

_CONFIG = config_flags.DEFINE_config_file("config", None, "The run: a shipped name, or a file.")
_WORKDIR = flags.DEFINE_string(
    "workdir", None, "Folder for checkpoints and metrics.", required=True
)
_ALLOW_CHANGED = flags.DEFINE_bool(
    "allow_changed_config", False, "Resume even if the workdir holds another configuration."
)
_JOIN_JOB = cli.define_job(__name__)
flags.mark_flag_as_required("config")


def main() -> int:
    """Trains; returns 0, or 128 + signal where one stopped the run (143 for SIGTERM)."""
    from invclr_jax.api import train

    _JOIN_JOB()
    result = train(
        _CONFIG.value,
        _WORKDIR.value,
        allow_changed_config=_ALLOW_CHANGED.value,
        programs=cli.compilation_cache(),
    )
    return 0 if result.signal is None else 128 + result.signal


def start() -> None:
    """Runs the command."""
    cli.run(main)


if __name__ == "__main__":
    start()
