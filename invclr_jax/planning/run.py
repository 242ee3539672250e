"""`plan`: from a configuration and a topology to a report."""

import dataclasses
import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import ml_collections
import numpy as np

from invclr_jax import config as configuration
from invclr_jax import data
from invclr_jax.data import cifar
from invclr_jax.planning import advice, machines, program, roofline
from invclr_jax.planning.machines import Machine
from invclr_jax.planning.program import Program
from invclr_jax.planning.report import Report, Step
from invclr_jax.training.loop import total_steps

Keep = Callable[[str, str], None]
"""Takes the name of a step and the text of its compiled program."""

IMAGENET = 1_281_167
"""Training pictures of ImageNet (ILSVRC 2012)."""

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """A run's steps, lowered for a machine and not compiled yet.

    Attributes:
      config: resolved and described.
      machine: what they are for.
      num_steps: of the whole run.
      lowered: `plain`, and `penalised` where there is a penalty.
    """

    config: ml_collections.ConfigDict
    machine: Machine
    num_steps: int
    lowered: dict[str, Any]


def lower(config: ml_collections.ConfigDict, topology: str | None) -> Job:
    """Traces a run's steps; what cannot run is refused with a sentence.

    Args:
      config: the run's. CIFAR need not be there: its shapes are known. A stream without a path is
        taken for ImageNet.
      topology: see `machines.find`.
    """
    config = configuration.resolve(config)
    machine = machines.find(topology)
    if machine.compiler == "cpu" and machine.chip is not None:
        config.model.conv = "xla"  # the CPU's own kernels are not what a GPU runs
    dataset = _data(config)
    config = configuration.describe(config, dataset)
    recipe = configuration.from_config(config, dataset, num_devices=len(machine.devices))
    arguments = program.arguments(
        recipe, dataset.train, config.batch_size, machine, config.data.on_device
    )
    kinds = {"plain": False} | ({"penalised": True} if config.penalty.weight else {})
    per_epoch = data.steps_per_epoch(len(dataset.train), config.batch_size)
    return Job(
        config,
        machine,
        total_steps(config, per_epoch),
        {name: program.lower(recipe, due, machine, arguments) for name, due in kinds.items()},
    )


def compile_job(
    job: Job,
    *,
    efficiency: float = roofline.EFFICIENCY,
    effort: str = "usual",
    keep: Keep | None = None,
    known: Mapping[str, Program] = MappingProxyType({}),
) -> Report:
    """Compiles a run's steps, which takes minutes for a large one, and reports what they need.

    Args:
      job: of `lower`.
      efficiency: part of the roofline's speed to expect.
      effort: see `program.compile_step`; for TPUs only, since other compilers are quick anyway.
      keep: given the texts of the compiled programs.
      known: programs that were compiled before in the same way, by their fingerprints.
    """
    config, machine = job.config, job.machine
    effort = effort if machine.compiler == "tpu" else "usual"
    steps = {}
    for name, lowered in job.lowered.items():
        compiled = known.get(program.fingerprint(lowered)) if known else None
        try:
            compiled = compiled or _compile(name, lowered, machine, effort, keep)
        except program.TooLargeError as error:
            steps[name] = Step(None, None, str(error))
            continue
        options = config.model.dtype, config.model.precision
        steps[name] = Step(compiled, roofline.bounds(compiled, machine, *options))
    return Report(config, machine, job.num_steps, steps, efficiency, _advice(job, steps))


def _compile(name: str, lowered: Any, machine: Machine, effort: str, keep: Keep | None) -> Program:
    _LOG.info("compiling the %s step for %s", name, machine.name)
    compiled, text = program.compile_step(lowered, effort=effort)
    if keep is not None:
        keep(name, text)
    return compiled


def plan(
    config: ml_collections.ConfigDict,
    topology: str | None = None,
    *,
    efficiency: float = roofline.EFFICIENCY,
) -> Report:
    """What a run needs on a machine; see `lower` and `compile_job`."""
    return compile_job(lower(config, topology), efficiency=efficiency)


def _advice(job: Job, steps: dict[str, Step]) -> list[str]:
    if any(step.program is None for step in steps.values()):
        return advice.smaller(job.config)
    programs = [step.program for step in steps.values() if step.program]
    bounds = [step.bounds for step in steps.values() if step.bounds]
    return advice.advise(job.config, job.machine, programs, bounds)


def _data(config: ml_collections.ConfigDict) -> data.Dataset:
    """The data; for CIFAR, and for a stream without a path, something of their shape."""
    if config.data.name in cifar.TITLES:
        return cifar.black(config.data.name)
    if config.data.name == "stream" and not config.data.path:
        return _like_imagenet(config.data.stream.size)
    return configuration.load_data(config)


def _like_imagenet(size: int) -> data.Dataset:
    """As many black pictures as ImageNet's training set has, which need no memory."""
    images = np.broadcast_to(np.zeros((), np.uint8), (IMAGENET, size, size, 3))
    train = data.Split(images, np.zeros(IMAGENET, np.int32))
    return data.Dataset("stream", train, None, num_classes=1000)
