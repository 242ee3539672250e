"""How long a step takes at least: its FLOPs, its memory traffic and its messages at peak speed.

The time is the largest of the three, as if each overlapped with the others. No program reaches it:
`efficiency` says which part of that speed to expect, an assumption and not a measurement.
"""

import dataclasses

from invclr_jax.planning import collectives
from invclr_jax.planning.machines import Machine
from invclr_jax.planning.program import Program

EFFICIENCY = 0.4


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Seconds that a step takes at least.

    Attributes:
      compute: its FLOPs at the chip's peak for the dtype and precision.
      memory: the bytes it reads and writes at the memory's bandwidth. Compilers also count what
        stays in on-chip memory, so this is no lower bound where that is much.
      links: the bytes it sends, in rings.
    """

    compute: float
    memory: float
    links: float

    @property
    def seconds(self) -> float:
        """The roofline: the largest."""
        return max(self.compute, self.memory, self.links)

    @property
    def limit(self) -> str:
        """Which of them it is."""
        named = dataclasses.asdict(self)
        return max(named, key=lambda name: named[name])


def bounds(program: Program, machine: Machine, dtype: str, precision: str) -> Bounds | None:
    """The roofline of a program; None for a chip that the table does not have.

    Args:
      program: compiled.
      machine: what it was compiled for.
      dtype: of the model's arithmetic.
      precision: `model.precision`.
    """
    chip, share, devices = machine.chip, machine.share, len(machine.devices)
    if chip is None:
        return None
    sent = sum(collectives.sent(found, devices) for found in program.collectives)
    return Bounds(
        compute=program.flops / (chip.peak(dtype, precision) * share),
        memory=program.bytes / (chip.bandwidth * share),
        links=sent / (chip.link * share),
    )


def hours(
    plain: float, penalised: float | None, *, steps: int, every: int, efficiency: float
) -> float:
    """Hours of a whole run.

    Args:
      plain: roofline of a plain step in seconds.
      penalised: of a penalised one; None where there is no penalty.
      steps: of the run.
      every: each so many steps one is penalised, the first of them.
      efficiency: part of the roofline's speed to expect.
    """
    due = 0 if penalised is None else -(-steps // every)
    return ((steps - due) * plain + due * (penalised or 0.0)) / efficiency / 3600
