"""Where the time of one penalised step goes: by part of the network and kind of operation.

Times come from JAX's profiler, what an operation is from the compiled program: XLA's names do not
say (a `ynn_fusion` may be a convolution, a matrix product or a sum). On CPUs the convolutions that
are not ours are started and continue in other threads: their events are too short here.
"""

import collections
import pathlib
import re
import tempfile
import time
from typing import NamedTuple

import jax

from benchmarks.measure import Row
from benchmarks.ours import Run, setting

WIDTH, BATCH, STEPS = 64, 64, 3

KINDS = {
    "convolution": {"convolution"},
    "matrix product": {"dot", "custom-call"},
    "sum over pixels or batch": {"reduce", "reduce-window"},
}
"""Kinds of operation by the opcodes that define them, the most expensive first."""
MOVES = {
    *("fusion", "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "reshape"),
    *("copy", "transpose", "pad", "slice", "dynamic-slice", "dynamic-update-slice", "concatenate"),
    *("broadcast", "reverse", "gather", "scatter", "iota"),
}
"""An operation made only of these computes nothing."""
MOVING, OTHER = "moving data", "pointwise"

CONVOLUTIONS = re.compile(r'custom_call_target="[^"]*(conv|_gradient)')
"""Calls to libraries that convolve: ours on CPUs, cuDNN on GPUs."""

PARTS = {
    "stem": r"/stem_",
    **{f"stage {n}": f"/layer{n}_block" for n in range(1, 5)},
    "head": r"/(dense[12]|bn[12])/",
}
REST = "views, loss, update"

CONTAINERS = ("while", "call", "conditional")
"""Their events contain those of other operations."""


class Instruction(NamedTuple):
    """A line of a compiled program: its opcode, the computation it calls, where it came from."""

    opcode: str
    calls: str
    op_name: str


def rows(repeats: int) -> list[Row]:
    """Seconds per step of each kind of operation."""
    del repeats
    run = Run(setting(model__width=WIDTH, batch_size=BATCH))
    program = run.compiled(penalised=True).as_text()
    seconds, wall = _trace(run)
    run.close()
    spent = classify(seconds, program)
    return [_row(kind, spent, wall) for kind in (*KINDS, MOVING, OTHER)]


def _row(kind: str, spent: dict[tuple[str, str], float], wall: float) -> Row:
    by_part = {part: spent.get((part, kind), 0.0) for part in (*PARTS, REST)}
    seconds = sum(by_part.values())
    return Row(
        f"{kind}, penalised step of ResNet18 width {WIDTH}, batch {BATCH}",
        seconds,
        details={
            "kind": kind,
            "by_part": by_part,
            "share": seconds / sum(spent.values()),
            "whole_step": wall,
        },
    )


def _trace(run: Run) -> tuple[dict[str, float], float]:
    """Seconds per step of each operation, and of the whole step."""
    jax.block_until_ready(run.step(penalised=True))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            start = time.perf_counter()
            for _ in range(STEPS):
                jax.block_until_ready(run.step(penalised=True))
            wall = (time.perf_counter() - start) / STEPS
        (path,) = pathlib.Path(folder).rglob("*.xplane.pb")
        found = jax.profiler.ProfileData.from_file(str(path))
        return _operations(found), wall


def _operations(found: jax.profiler.ProfileData) -> dict[str, float]:
    seconds: dict[str, float] = collections.defaultdict(float)
    for plane in found.planes:
        for line in plane.lines:
            for event in line.events:
                operation = dict(event.stats).get("hlo_op")
                if operation is not None:
                    seconds[str(operation)] += event.duration_ns / 1e9 / STEPS
    return seconds


# What an operation is --------------------------------------------------------------------------


def classify(seconds: dict[str, float], program: str) -> dict[tuple[str, str], float]:
    """Seconds by (part of the network, kind of operation), from those of each operation."""
    computations = parse(program)
    instructions = {name: found for lines in computations.values() for name, found in lines.items()}
    spent: dict[tuple[str, str], float] = collections.defaultdict(float)
    for name, time_spent in seconds.items():
        instruction = instructions.get(name)
        if instruction is None or instruction.opcode in CONTAINERS:
            continue
        inside = [instruction, *computations.get(instruction.calls, {}).values()]
        spent[_part(inside), _kind(inside)] += time_spent
    return spent


def parse(program: str) -> dict[str, dict[str, Instruction]]:
    """The instructions of each computation in the text of a compiled program, by name."""
    computations: dict[str, dict[str, Instruction]] = {}
    current: dict[str, Instruction] = {}
    for line in program.splitlines():
        header = re.match(r"(?:ENTRY )?%?([\w.-]+) .*\{$", line)
        if header and not line.startswith("HloModule"):
            current = computations.setdefault(header[1], {})
        found = re.match(r"\s+(?:ROOT )?%?([\w.-]+) = (?:\(.*?\)|\S+) ([\w-]+)\(", line)
        if found:
            calls = re.search(r"(?:calls|to_apply)=%?([\w.-]+)", line)
            op_name = re.search(r'op_name="([^"]*)"', line)
            opcode = "convolution" if CONVOLUTIONS.search(line) else found[2]
            current[found[1]] = Instruction(
                opcode, calls[1] if calls else "", op_name[1] if op_name else ""
            )
    return computations


def _kind(inside: list[Instruction]) -> str:
    opcodes = {instruction.opcode for instruction in inside}
    neither = MOVING if opcodes <= MOVES else OTHER
    return next((kind for kind, those in KINDS.items() if opcodes & those), neither)


def _part(inside: list[Instruction]) -> str:
    names = " ".join(instruction.op_name for instruction in inside)
    return next((part for part, pattern in PARTS.items() if re.search(pattern, names)), REST)


def plot(rows: list[Row], path: pathlib.Path) -> None:
    """Bars of the parts, stacked by kind."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    parts = [*PARTS, REST][::-1]
    left = [0.0] * len(parts)
    for row in rows:
        lengths = [1e3 * row.details["by_part"][part] for part in parts]
        axes.barh(parts, lengths, left=left, label=row.details["kind"])
        left = [a + b for a, b in zip(left, lengths, strict=True)]
    axes.set(xlabel="ms a step", title=f"Penalised step, ResNet18 width {WIDTH}, batch {BATCH}")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=150)
    plt.close(figure)
