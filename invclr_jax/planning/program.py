"""Compiles a run's own training step for a machine and reads what the compiler says of it."""

import dataclasses
import hashlib
import time
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from invclr_jax import data
from invclr_jax.data.feed import fits
from invclr_jax.planning import collectives
from invclr_jax.planning.collectives import Collective
from invclr_jax.planning.machines import Machine
from invclr_jax.training.state import Recipe
from invclr_jax.training.step import create_state, pmapped_step

EFFORTS = {"usual": 0.0, "least": -1.0}
"""How much the compiler optimises, on XLA's scale from -1 to 1; runs are compiled with 0."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A compiled step, per device.

    Attributes:
      arguments: bytes of state, data and indices.
      outputs: bytes of the results that do not reuse the memory of arguments.
      temporaries: bytes of what lives while it runs, activations above all.
      code: bytes of the program.
      flops: of one step, as the compiler counts them.
      bytes: read and written in one step, as the compiler counts them.
      collectives: what it sends.
      seconds: that compiling took.
      fingerprint: of the program before it was compiled.
      effort: how much the compiler optimised.
    """

    arguments: int
    outputs: int
    temporaries: int
    code: int
    flops: float
    bytes: float
    collectives: tuple[Collective, ...]
    seconds: float
    fingerprint: str
    effort: str = "usual"

    @property
    def memory(self) -> int:
        """Bytes of a device's memory in all."""
        return self.arguments + self.outputs + self.temporaries + self.code


class TooLargeError(ValueError):
    """A step that needs more memory than a device has, as the compiler says."""


def lower(recipe: Recipe, penalised: bool, machine: Machine, arguments: tuple) -> Any:
    """The step that training runs, for this machine's devices, before compilation."""
    return pmapped_step(recipe, penalised, machine.devices).lower(*arguments)


def compile_step(lowered: Any, *, effort: str = "usual") -> tuple[Program, str]:
    """The compiled step's figures and its text.

    Args:
      lowered: of `lower`.
      effort: of `EFFORTS`; `least` takes a fraction of the time and makes other programs.
    """
    options = {"exec_time_optimization_effort": EFFORTS[effort]}
    start = time.perf_counter()
    try:
        compiled = lowered.compile(compiler_options=options)
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" in str(error):
            raise TooLargeError(_first_line(error)) from None
        raise
    seconds = time.perf_counter() - start
    memory, cost, text = compiled.memory_analysis(), compiled.cost_analysis(), compiled.as_text()
    program = Program(
        arguments=memory.argument_size_in_bytes,
        outputs=memory.output_size_in_bytes - memory.alias_size_in_bytes,
        temporaries=memory.temp_size_in_bytes,
        code=memory.generated_code_size_in_bytes,
        flops=cost["flops"],
        bytes=cost["bytes accessed"],
        collectives=collectives.find(text),
        seconds=seconds,
        fingerprint=fingerprint(lowered),
        effort=effort,
    )
    return program, text


def fingerprint(lowered: Any) -> str:
    """Tells one program from another, whoever wrote the lines that it comes from."""
    return hashlib.sha256(lowered.as_text().encode()).hexdigest()[:16]


def arguments(
    recipe: Recipe, split: data.Split, batch_size: int, machine: Machine, on_device: bool | None
) -> tuple[PyTree, PyTree, Any, Any]:
    """Shapes of a step's arguments: state, rows, indices and key.

    Args:
      recipe: the run's fixed parts.
      split: the training set.
      batch_size: over all devices.
      machine: what to compile for.
      on_device: whether each device keeps the whole training set; None: if it fits.
    """
    num_devices = len(machine.devices)
    share = batch_size // num_devices
    if on_device is None:
        on_device = machine.memory is None or fits(split, machine.memory)
    kept = len(split) if on_device else share

    def on_each(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((num_devices, *shape), dtype)

    state = jax.eval_shape(lambda: create_state(recipe))
    rows = {
        name: on_each((kept, *array.shape[1:]), array.dtype) for name, array in split.rows.items()
    }
    return (
        jax.tree.map(lambda leaf: on_each(leaf.shape, leaf.dtype), state),
        rows,
        on_each((share,), jnp.int32),
        jax.eval_shape(lambda: recipe.key),
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
