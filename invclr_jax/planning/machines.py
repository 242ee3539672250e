"""Devices to compile for: TPU slices that are not here, GPUs by their figures, or this machine."""

import contextlib
import dataclasses
import importlib.util
import math
import os
import re
from collections.abc import Sequence
from typing import Any

import jax
from jax.experimental import topologies

from invclr_jax.planning.chips import CHIPS, Chip, of_kind

_SLICE = re.compile(r"(\w+):(\d+)x(\d+)(?:x(\d+))?")
_COUNT = re.compile(r"(\w+):(\d+)")
_ON_ONE_HOST = {"v4": 4, "v5e": 8, "v5p": 4, "v6e": 8}
"""Chips of the largest slice that has a single host; hosts of larger ones have four chips."""

_QUIET = {
    "TPU_SKIP_MDS_QUERY": "1",  # there is no metadata server to ask
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # no device is opened, so several may compile at a time
}
"""What libtpu asks for where there is no TPU; the topology itself is given by name."""

EXAMPLES = "v5e:2x4, v6e:2x4, v4:2x2x1 or v5p:2x2x1 (TPU slices), a100:8, h100:8 or mi300x:8 (GPUs)"


@dataclasses.dataclass(frozen=True, eq=False)
class Machine:
    """What a step is compiled for.

    Attributes:
      name: as given, or what this machine has.
      chip: its figures; None if the table does not have it.
      devices: what JAX compiles for; one or two a chip.
      num_chips: chips.
      num_hosts: hosts.
      compiler: whose numbers these are: `tpu`, or `cpu` where the chip's own compiler is not here.
    """

    name: str
    chip: Chip | None
    devices: Sequence[jax.Device]
    num_chips: int
    num_hosts: int
    compiler: str

    @property
    def share(self) -> float:
        """Part of a chip's figures that a device has."""
        return self.num_chips / len(self.devices)

    @property
    def memory(self) -> int | None:
        """Bytes of a device's own memory, if they are known."""
        return None if self.chip is None else int(self.chip.memory * self.share)


def find(topology: str | None) -> Machine:
    """The machine that `--topology` names; a ValueError with a sentence if there is none.

    Args:
      topology: a TPU slice, `v5e:2x4`; a number of GPUs, `a100:8`; None for this machine.
    """
    if topology is None:
        return _this_machine()
    if match := _SLICE.fullmatch(topology):
        name, *sides = match.groups()
        if name in CHIPS and CHIPS[name].platform == "tpu":
            return _slice(topology, CHIPS[name], [int(side or 1) for side in sides])
    if match := _COUNT.fullmatch(topology):
        name, count = match[1], int(match[2])
        if name in CHIPS and CHIPS[name].platform != "tpu" and count > 0:
            return _gpus(topology, CHIPS[name], count)
    raise ValueError(f"no topology {topology!r}: use one such as {EXAMPLES}")


def prepare(topology: str | None) -> None:
    """Makes room for the virtual devices that GPUs are counted on, before JAX starts."""
    match = _COUNT.fullmatch(topology or "")
    if match and match[1] in CHIPS and "xla_force_host" not in os.environ.get("XLA_FLAGS", ""):
        jax.config.update("jax_num_cpu_devices", int(match[2]))


def _this_machine() -> Machine:
    devices = jax.devices()
    first = devices[0]
    name = f"{len(devices)} × {first.device_kind}"
    chip = of_kind(first.device_kind)
    return Machine(name, chip, devices, len(devices), jax.process_count(), first.platform)


def _slice(topology: str, chip: Chip, sides: list[int]) -> Machine:
    if importlib.util.find_spec("libtpu") is None:
        raise ValueError(
            f"--topology={topology} needs the TPU compiler, which runs without a TPU: "
            'pip install "invclr_jax[tpu]"'
        )
    count = math.prod(sides)
    host = sides if count <= _ON_ONE_HOST[chip.name] else [2, 2, 1]
    try:
        with _environment(_QUIET):
            devices: Sequence[Any] = topologies.get_topology_desc(
                platform="tpu", topology_name=topology, chips_per_host_bounds=host
            ).devices
    except jax.errors.JaxRuntimeError as error:
        raise ValueError(
            f"the TPU compiler refuses the topology {topology} ({error}): use one such as "
            f"{EXAMPLES}"
        ) from None
    hosts = len({device.process_index for device in devices})
    return Machine(topology, chip, devices, count, hosts, "tpu")


def _gpus(topology: str, chip: Chip, count: int) -> Machine:
    """Virtual CPU devices: their compiler counts FLOPs, bytes and memory without a GPU."""
    devices = jax.devices("cpu")
    if len(devices) < count:
        raise ValueError(
            f"--topology={topology} needs {count} virtual CPU devices and JAX has {len(devices)}: "
            f"set XLA_FLAGS=--xla_force_host_platform_device_count={count}"
        )
    return Machine(topology, chip, devices[:count], count, 1, "cpu")


@contextlib.contextmanager
def _environment(values: dict[str, str]):
    """Sets variables that are not set, for the while that libtpu starts."""
    missing = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]
