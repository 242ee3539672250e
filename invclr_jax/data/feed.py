"""Brings batches to the devices: rows that already live there, or rows sent ahead of their step.

Either way a step receives `(rows, indices)` and gathers `rows[indices]` on each device, so the
compiled step does not know which way is used, and both give the same batches. Streamed pictures
are read ahead too, see `streaming`.
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
from invclr_jax.data.streaming.batches import stream
from invclr_jax.data.streaming.pictures import Pictures
from invclr_jax.data.streaming.source import blocks_of

AHEAD = 2
"""Steps whose rows the host feed prepares while the devices compute."""

SHARE = 4
"""A dataset fits on a device if it takes at most 1/SHARE of its memory."""

UNKNOWN_MEMORY = 2**33
"""Bytes assumed for all local devices together if they report none (CPU)."""

Rows = Mapping[str, np.ndarray]
Batch = tuple[Mapping[str, Array], Int32[Array, "devices per_device"]]
Batches = Generator[tuple[int, Batch], None, None]
Indices = Callable[[int], np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Feed:
    """Iterates over (step, (rows, indices)); as a context manager it also ends its thread on exit.

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
      batch_size: of the global batch; a multiple of the number of all devices.
      num_steps: of the whole run.
      start_step: where to resume.
      on_device: True keeps the whole split on every device, False sends each batch from the host,
        `auto` decides by whether the split fits.
      process_index: of this process; JAX's own if None.
      process_count: number of processes; JAX's own if None.

    Returns:
      A feed of (step, (rows, indices)): rows holds `image` and, if there are labels, `label`,
      each with a leading device axis for `pmap`; a step gathers `rows[indices]` on each device.
    """
    process_index = jax.process_index() if process_index is None else process_index
    process_count = jax.process_count() if process_count is None else process_count
    local_devices = jax.local_device_count()
    check_batch_size(batch_size, process_count * local_devices)
    steps_per_epoch(len(split), batch_size)  # refuses a batch larger than the split

    pictures = split.images if isinstance(split.images, Pictures) else None
    indices = _Indices(
        seed,
        len(split),
        batch_size,
        None if pictures is None else blocks_of_pictures(pictures),
        {"process_index": process_index, "process_count": process_count},
        local_devices,
    )
    steps = range(start_step, num_steps)
    if pictures is not None:
        if on_device is True:
            raise ValueError(
                "streamed pictures cannot be kept on the devices: leave out on_device "
                "(config.data.on_device), or load them into memory as folder or arrays"
            )
        return Feed(_from_stream(pictures, split.labels, indices, steps))
    kept = fits_on_devices(split) if on_device == "auto" else on_device
    return Feed((_from_devices if kept else _from_host)(split.rows, indices, steps))


def blocks_of_pictures(pictures: Pictures) -> tuple[int, ...] | None:
    """Rows in each block of a source that is read in blocks; None for others and for a part."""
    blocks = blocks_of(pictures.source) if pictures.rows is None else None
    return None if blocks is None else tuple(blocks)


@dataclasses.dataclass(frozen=True)
class _Indices:
    """step -> this process's rows, `[devices, per_device]`; this is sent to workers."""

    seed: int
    num_examples: int
    batch_size: int
    blocks: tuple[int, ...] | None
    process: Mapping[str, int]
    local_devices: int

    def __call__(self, step: int) -> np.ndarray:
        rows = batch_indices(self.seed, step, self.num_examples, self.batch_size, self.blocks)
        return device_indices(rows, local_devices=self.local_devices, **self.process)

    def flat(self, step: int) -> np.ndarray:
        """The same rows as one axis."""
        return self(step).reshape(-1)


def fits_on_devices(split: Split) -> bool:
    """Whether each local device has room for a copy of the split."""
    statistics = jax.local_devices()[0].memory_stats() or {}
    room = statistics.get("bytes_limit", UNKNOWN_MEMORY // jax.local_device_count())
    return fits(split, room)


def fits(split: Split, room: int) -> bool:
    """Whether a device with this many bytes of memory has room for a copy of the split."""
    return sum(rows.nbytes for rows in split.rows.values()) * SHARE <= room


def _from_devices(rows: Rows, indices: Indices, steps: range) -> Batches:
    """Every device keeps all rows; only indices are sent."""
    copies = parallel.replicate(rows)
    for step in steps:
        yield step, (copies, parallel.distribute(indices(step)))


def _from_host(rows: Rows, indices: Indices, steps: range) -> Batches:
    """A thread gathers the rows of the next steps and sends them; a step takes all of them."""

    def prepare(step: int) -> Batch:
        chosen = indices(step)
        return _send({name: np.take(array, chosen, axis=0) for name, array in rows.items()}, chosen)

    return _ahead(prepare, steps)


def _from_stream(
    pictures: Pictures, labels: np.ndarray | None, indices: _Indices, steps: range
) -> Batches:
    """A thread takes pictures from their readers and sends them."""
    if not steps:
        return
    read = stream(pictures, indices.flat, steps, indices(steps.start).size)

    def prepare(step: int) -> Batch:
        chosen = indices(step)
        sent = {"image": next(read).reshape(*chosen.shape, *pictures.shape_of_one)}
        if labels is not None:
            sent["label"] = labels[chosen]
        return _send(sent, chosen)

    try:
        yield from _ahead(prepare, steps)
    finally:
        read.close()


def _send(rows: Rows, chosen: np.ndarray) -> Batch:
    """Rows `[devices, per_device, ...]`, all of which a step gathers."""
    everything = np.broadcast_to(np.arange(chosen.shape[1], dtype=np.int32), chosen.shape)
    return parallel.distribute(rows), parallel.distribute(everything)


def _ahead(prepare: Callable[[int], Batch], steps: range) -> Batches:
    """Batches from a thread that stays a few steps ahead, and no more."""
    ahead: collections.deque[concurrent.futures.Future[Batch]] = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(1, "host feed") as thread:
        for step in steps:
            while len(ahead) <= AHEAD and step + len(ahead) < steps.stop:
                ahead.append(thread.submit(prepare, step + len(ahead)))
            yield step, ahead.popleft().result()
