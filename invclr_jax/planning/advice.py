"""What to change so that a run fits, or is faster: sentences, from the compiled figures alone."""

from collections.abc import Sequence

import ml_collections

from invclr_jax.planning.machines import Machine
from invclr_jax.planning.program import Program
from invclr_jax.planning.roofline import Bounds

RESERVE = 0.05
"""Part of the memory that the runtime keeps for itself."""

LITTLE_USED = 0.5
"""Part of the memory below which a larger batch is worth naming."""


def largest_batch(program: Program, machine: Machine, batch_size: int) -> int | None:
    """The largest global batch that fits, by a linear model; None where memory is not known.

    Temporaries are taken to grow with the batch, all else not to: on the safe side, since some
    temporaries, such as gradients, do not.

    Args:
      program: compiled for `batch_size`.
      machine: what it was compiled for.
      batch_size: over all devices.
    """
    if machine.memory is None or not program.temporaries:
        return None
    devices = len(machine.devices)
    room = machine.memory * (1 - RESERVE) - (program.memory - program.temporaries)
    images = batch_size / devices * room / program.temporaries
    return max(int(images), 0) * devices


def advise(
    config: ml_collections.ConfigDict,
    machine: Machine,
    programs: Sequence[Program],
    bounds: Sequence[Bounds],
) -> list[str]:
    """Sentences; none if there is nothing to say.

    Args:
      config: the run's.
      machine: what its steps were compiled for.
      programs: its steps.
      bounds: their rooflines, empty where the chip is not known.
    """
    if machine.memory is None:
        return ["the memory of this device is not in the table: compare the total with what it has"]
    largest = max(programs, key=lambda program: program.memory)
    if largest.memory > machine.memory * (1 - RESERVE):
        return smaller(config)
    said = []
    most = largest_batch(largest, machine, config.batch_size)
    if most and largest.memory < LITTLE_USED * machine.memory:
        said.append(
            f"a batch of up to {most} fits, by a linear model of the temporaries; a method changes "
            "with its batch, so a smaller slice may be the better use"
        )
    if config.model.remat:
        said.append("it may fit without config.model.remat, which costs a forward pass")
    limits = {bound.limit for bound in bounds}
    if limits - {"links"} and config.model.dtype == "float32":
        said.append("config.model.dtype=bfloat16 halves the memory and traffic of activations")
    if "links" in limits:
        said.append("messages between devices take longest: use fewer devices or a larger batch")
    return said


def smaller(config: ml_collections.ConfigDict) -> list[str]:
    """What makes a step smaller, the harmless first."""
    said = []
    if not config.model.remat:
        said.append("set config.model.remat=True: the same numbers for one forward pass more")
    if config.model.dtype == "float32":
        said.append("set config.model.dtype=bfloat16: half the memory of activations")
    if config.penalty.weight and config.penalty.estimator == "sampled":
        said.append("config.penalty.estimator=forward keeps less alive than sampled")
    said.append(
        f"raise config.chunks above {config.chunks} (batch norm's scope must allow it), or lower "
        "config.batch_size"
    )
    return said
