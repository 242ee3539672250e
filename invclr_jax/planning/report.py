"""The outcome of a plan: a table for the terminal and a record for files."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import ml_collections

from invclr_jax.planning.collectives import Collective
from invclr_jax.planning.machines import Machine
from invclr_jax.planning.program import Program
from invclr_jax.planning.roofline import Bounds, hours

GIB, GIGA, TERA = 2**30, 10**9, 10**12


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
    """One of a run's two programs.

    Attributes:
      program: what the compiler says of it; None where it does not fit.
      bounds: its roofline; None where the chip is not known.
      refusal: the compiler's sentence where it does not fit.
    """

    program: Program | None
    bounds: Bounds | None
    refusal: str | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Report:
    """What a run needs on a machine.

    Attributes:
      config: resolved and described.
      machine: what it was compiled for.
      num_steps: of the whole run.
      steps: by name, `plain` and `penalised`.
      efficiency: part of the roofline's speed that times assume.
      advice: sentences.
    """

    config: ml_collections.ConfigDict
    machine: Machine
    num_steps: int
    steps: Mapping[str, Step]
    efficiency: float
    advice: Sequence[str]

    @property
    def hours(self) -> float | None:
        """Of the whole run, at the assumed efficiency; None where that is not known."""
        seconds = {name: step.bounds.seconds for name, step in self.steps.items() if step.bounds}
        if len(seconds) < 1 + bool(self.config.penalty.weight):
            return None
        return hours(
            seconds["plain"],
            seconds.get("penalised"),
            steps=self.num_steps,
            every=self.config.penalty.every,
            efficiency=self.efficiency,
        )

    def images_per_second(self, step: Step) -> float | None:
        """At the assumed efficiency."""
        if step.bounds is None:
            return None
        return self.config.batch_size / step.bounds.seconds * self.efficiency

    def record(self) -> dict[str, Any]:
        """Everything in plain values, for JSON."""
        machine = self.machine
        return {
            "topology": machine.name,
            "chips": machine.num_chips,
            "devices": len(machine.devices),
            "hosts": machine.num_hosts,
            "compiler": machine.compiler,
            "memory": machine.memory,
            "jax": jax.__version__,
            "method": self.config.method,
            "encoder": self.config.model.name,
            "dtype": self.config.model.dtype,
            "precision": self.config.model.precision,
            "batch_size": self.config.batch_size,
            "num_steps": self.num_steps,
            "efficiency": self.efficiency,
            "steps": {name: self._step(step) for name, step in self.steps.items()},
            "hours": self.hours,
            "advice": list(self.advice),
        }

    def _step(self, step: Step) -> dict[str, Any]:
        if step.program is None:
            return {"refusal": step.refusal}
        found = dataclasses.asdict(step.program) | {"memory": step.program.memory}
        if step.bounds is not None:
            bounds = dataclasses.asdict(step.bounds)
            found["roofline"] = bounds | {
                "seconds": step.bounds.seconds,
                "limit": step.bounds.limit,
            }
            found["images_per_second"] = self.images_per_second(step)
        return found


def programs(record: Mapping[str, Any]) -> dict[str, Program]:
    """The compiled programs of a record, by their fingerprints."""
    names = {field.name for field in dataclasses.fields(Program)}
    found = {}
    for step in record["steps"].values():
        if "refusal" not in step:
            values = {name: step[name] for name in names}
            values["collectives"] = tuple(Collective(**c) for c in step["collectives"])
            found[step["fingerprint"]] = Program(**values)
    return found


def table(record: Mapping[str, Any]) -> str:
    """A record as text of one column for each step."""
    steps = record["steps"]
    unit = "device" if record["devices"] != record["chips"] else "chip"
    rows = [("", *steps), *_rows(record, unit)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(steps) + 1)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    return "\n".join([_title(record), "", *lines, "", *_foot(record)])


def _title(record: Mapping[str, Any]) -> str:
    return (
        f"{record['method']}, {record['encoder']}, {record['dtype']}, precision "
        f"{record['precision']}, batch {record['batch_size']}, on {record['topology']}: "
        f"{record['chips']} chips, {record['devices']} devices, {record['hosts']} "
        f"host{'s' if record['hosts'] > 1 else ''}; figures of the {record['compiler']} compiler"
    )


def _rows(record: Mapping[str, Any], unit: str) -> list[tuple[str, ...]]:
    def row(name: str, show) -> tuple[str, ...]:
        return (name, *("-" if "refusal" in step else show(step) for step in steps))

    steps, memory = list(record["steps"].values()), record["memory"]
    of = f" of {_gib(memory)}" if memory else ""
    rows = [
        row(f"arguments a {unit}", lambda s: _gib(s["arguments"])),
        row("temporaries", lambda s: _gib(s["temporaries"])),
        row("outputs and code", lambda s: _gib(s["outputs"] + s["code"])),
        row("total", lambda s: _gib(s["memory"]) + of),
        row("FLOPs a step", lambda s: f"{s['flops'] / TERA:.3f} T"),
        row("bytes a step", lambda s: f"{s['bytes'] / GIGA:.2f} GB"),
    ]
    kinds = sorted({found["kind"] for s in steps for found in s.get("collectives", ())})
    rows += [row(kind, lambda s, kind=kind: _sent(s["collectives"], kind)) for kind in kinds]
    if all("roofline" in step for step in steps):
        for name in ("compute", "memory", "links"):
            rows.append(
                row(f"roofline: {name}", lambda s, name=name: f"{s['roofline'][name] * 1e3:.2f} ms")
            )
        rows.append(row("images/s", lambda s: f"{s['images_per_second']:,.0f}"))
    return rows


def _foot(record: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, step in record["steps"].items():
        if "refusal" in step:
            lines.append(f"the {name} step does not fit: {step['refusal']}")
    if record["hours"] is not None:
        lines.append(
            f"{record['num_steps']:,} steps: {record['hours']:.2f} h, if "
            f"{record['efficiency']:.0%} of the roofline is reached, which nobody has measured"
        )
    return lines + [f"- {sentence}" for sentence in record["advice"]]


def _sent(collectives: Sequence[Mapping[str, Any]], kind: str) -> str:
    for found in collectives:
        if found["kind"] == kind:
            return f"{found['count']}: {found['bytes'] / 1e6:.2f} MB"
    return "none"


def _gib(size: float) -> str:
    return f"{size / GIB:.2f} GiB"
