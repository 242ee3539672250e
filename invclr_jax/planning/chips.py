"""Published figures of accelerators: the one table that estimates are made from.

All are peaks for dense arithmetic, per chip. Gigabytes are taken as published, 10⁹ bytes where the
source says GB. Links are one direction of the interconnect within a machine or slice, all ports of
a chip together: half of what is published as bidirectional.
"""

import dataclasses
from collections.abc import Mapping

from invclr_jax.models.dtypes import PRECISIONS

GB, GIB, TERA = 10**9, 2**30, 10**12


@dataclasses.dataclass(frozen=True)
class Chip:
    """An accelerator.

    Attributes:
      name: as in `--topology`.
      platform: `tpu`, `cuda` or `rocm`.
      kind: how JAX calls it, or the part of that name that tells it from others.
      memory: bytes of HBM.
      bandwidth: of HBM, in bytes a second.
      link: to other chips, in bytes a second.
      bfloat16: peak in FLOP a second.
      float32: peak for float32 operands at each `model.precision`.
      source: where these figures are published.
    """

    name: str
    platform: str
    kind: str
    memory: int
    bandwidth: float
    link: float
    bfloat16: float
    float32: Mapping[str, float]
    source: str

    def peak(self, dtype: str, precision: str) -> float:
        """FLOP a second of products in this dtype at this `model.precision`."""
        return self.bfloat16 if dtype == "bfloat16" else self.float32[precision]


def _passes(peak: float) -> dict[str, float]:
    """TPUs multiply float32 numbers as one, three or six products of bfloat16 numbers."""
    return dict(zip(PRECISIONS, (peak, peak / 3, peak / 6), strict=True))


def _tf32(tf32: float, plain: float) -> dict[str, float]:
    """GPUs since Ampere round float32 operands to TF32 unless `highest` is asked for."""
    return dict(zip(PRECISIONS, (tf32, tf32, plain), strict=True))


def _tpu(name, kind, memory, bandwidth, link, peak) -> Chip:
    source = f"https://cloud.google.com/tpu/docs/{name}"
    return Chip(name, "tpu", kind, memory, bandwidth, link, peak, _passes(peak), source)


CHIPS = {
    chip.name: chip
    for chip in (
        # The link of v4 is derived: its page has 1.1 PB/s of all-reduce for 4096 chips.
        _tpu("v4", "TPU v4", 32 * GIB, 1200 * GB, 268 * GB, 275 * TERA),
        _tpu("v5e", "TPU v5 lite", 16 * GB, 819 * GB, 200 * GB, 197 * TERA),
        _tpu("v5p", "TPU v5", 95 * GB, 2765 * GB, 600 * GB, 459 * TERA),
        _tpu("v6e", "TPU v6 lite", 32 * GB, 1600 * GB, 400 * GB, 918 * TERA),
        Chip(
            *("a100", "cuda", "A100", 80 * GB, 2039 * GB, 300 * GB, 312 * TERA),
            _tf32(156 * TERA, 19.5 * TERA),
            "NVIDIA A100 data sheet (80 GB SXM), as quoted by others",
        ),
        Chip(
            *("h100", "cuda", "H100", 80 * GB, 3350 * GB, 450 * GB, 989.4 * TERA),
            _tf32(494.7 * TERA, 66.9 * TERA),
            "NVIDIA H100 data sheet (SXM5), as quoted by others",
        ),
        # XLA computes float32 products in float32 on AMD's GPUs.
        Chip(
            *("mi300x", "rocm", "MI300X", 192 * GB, 5300 * GB, 448 * GB, 1307.4 * TERA),
            dict.fromkeys(PRECISIONS, 163.4 * TERA),
            "AMD MI300X data sheet, as quoted by others; float32 from memory",
        ),
    )
}


def of_kind(device_kind: str) -> Chip | None:
    """The chip that JAX calls so; None if the table does not have it."""
    found = [chip for chip in CHIPS.values() if chip.kind in device_kind]
    return max(found, key=lambda chip: len(chip.kind), default=None)
