"""Brings batches to the devices: rows that already live there, or rows sent ahead of their step.

Both ways hand a step `(rows, indices)` and the step gathers `rows[indices]` on each device, so the
compiled step does not know which way is used, and both ways give the same batches.
"""

import collections
import concurrent.futures
import dataclasses
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Literal

import jax
import numpy as np
from jaxtyping import Array, Int32

from invclr_jax import parallel
from invclr_jax.data.dataset import Split
from invclr_jax.data.order import batch_indices, check_batch_size, device_indices, steps_per_epoch

AHEAD = 2
"""Steps whose rows the host feed prepares while the devices compute."""

SHARE = 4
"""A dataset fits on a device if it takes at most one part in SHARE of its memory."""

UNKNOWN_MEMORY = 2**33
"""Bytes assumed over all local devices where they do not tell (CPU)."""

Rows = Mapping[str, np.ndarray]
Batch = tuple[Mapping[str, Array], Int32[Array, "devices per_device"]]
Batches = Generator[tuple[int, Batch], None, None]
Indices = Callable[[int], np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Feed:
    """Iterates over (step, (rows, indices)); as a context it also ends its thread on the way out.

    Attributes:
      batches: the steps still to come.
    """

    batches: Batches

    def __iter__(self) -> Iterator[tuple[int, Batch]]:
        return self.batches

    def __enter__(self) -> "Feed":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops preparing batches; does nothing the second time."""
        self.batches.close()


def make_feed(
    split: Split,
    *,
    seed: int,
    batch_size: int,
    num_steps: int,
    start_step: int = 0,
    on_device: bool | Literal["auto"] = "auto",
    process_index: int | None = None,
    process_count: int | None = None,
) -> Feed:
    """Batches of steps start_step … num_steps - 1 for this process's devices.

    Args:
      split: the training set.
      seed: of the run; the order depends on nothing else.
      batch_size: of the global batch; the number of all devices must divide it.
      num_steps: of the whole run.
      start_step: where to resume.
      on_device: True keeps the whole split on every device, False sends each batch from the host,
        `auto` decides by whether the split fits.
      process_index: of this process; JAX's own if None.
      process_count: number of processes; JAX's own if None.

    Returns:
      A feed of (step, (rows, indices)): rows holds `image` and, where there are labels, `label`,
      each with a leading device axis for `pmap`; a step gathers `rows[indices]` on each device.
    """
    process_index = jax.process_index() if process_index is None else process_index
    process_count = jax.process_count() if process_count is None else process_count
    local_devices = jax.local_device_count()
    check_batch_size(batch_size, process_count * local_devices)
    steps_per_epoch(len(split), batch_size)  # refuses a batch larger than the split

    def indices(step: int) -> np.ndarray:
        return device_indices(
            batch_indices(seed, step, len(split), batch_size),
            process_index=process_index,
            process_count=process_count,
            local_devices=local_devices,
        )

    steps = range(start_step, num_steps)
    kept = fits_on_devices(split) if on_device == "auto" else on_device
    return Feed((_from_devices if kept else _from_host)(split.rows, indices, steps))


def fits_on_devices(split: Split) -> bool:
    """Whether each local device has room for a copy of the split."""
    statistics = jax.local_devices()[0].memory_stats() or {}
    room = statistics.get("bytes_limit", UNKNOWN_MEMORY // jax.local_device_count())
    return fits(split, room)


def fits(split: Split, room: int) -> bool:
    """Whether a device with so many bytes of memory has room for a copy of the split."""
    return sum(rows.nbytes for rows in split.rows.values()) * SHARE <= room


def _from_devices(rows: Rows, indices: Indices, steps: range) -> Batches:
    """Every device keeps all rows; only indices travel."""
    copies = parallel.replicate(rows)
    for step in steps:
        yield step, (copies, parallel.distribute(indices(step)))


def _from_host(rows: Rows, indices: Indices, steps: range) -> Batches:
    """A thread gathers and sends the rows of the next steps; all of them are gathered there."""

    def prepare(step: int) -> Batch:
        chosen = indices(step)
        everything = np.broadcast_to(np.arange(chosen.shape[1], dtype=np.int32), chosen.shape)
        sent = {name: np.take(array, chosen, axis=0) for name, array in rows.items()}
        return parallel.distribute(sent), parallel.distribute(everything)

    ahead: collections.deque[concurrent.futures.Future[Batch]] = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(1, "host feed") as thread:
        for step in steps:
            while len(ahead) <= AHEAD and step + len(ahead) < steps.stop:
                ahead.append(thread.submit(prepare, step + len(ahead)))
            yield step, ahead.popleft().result()
