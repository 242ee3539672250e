"""One pass over all rows of a data set, on all devices of all processes.

Each device takes `batch_size` rows at a time, whatever the number of devices, so that the program
it runs, and with it every bit of a feature, is that of a single device. The host prepares the next
rows while the devices compute, and waits only for the oldest result.
"""

import collections
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from invclr_jax import parallel
from invclr_jax.evaluation import passes
from invclr_jax.evaluation.checks import at_least_one
from invclr_jax.evaluation.progress import Progress
from invclr_jax.evaluation.storage import MEMORY, empty

AHEAD = 2
"""Rounds that the devices may lag behind the host; more would only take memory."""


def sweep(
    function: Callable,
    shared: Mapping[str, Any],
    x: Any,
    batch_size: int,
    *,
    rows: Mapping[str, Any] | None = None,
    indexed: bool = False,
    first: int = 0,
    memory: int = MEMORY,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Runs a pass over all rows; batches have one shape, and the last is padded.

    Args:
      function: of `passes`: rows of x, and more by name -> a pytree of arrays with a row for each.
      shared: its arguments that are the same for all rows, by name.
      x: inputs, `[n, ...]`; anything with a length that gives rows for an array of indices.
      batch_size: rows that each device takes at a time.
      rows: further arguments with a row for each input, by name: pytrees of arrays.
      indexed: whether the function takes `index`, the number of each row.
      first: number of the first row.
      memory: bytes beyond which a result is kept in a file instead of the host's memory.
      progress: callback with the number of finished rows.
      **options: static arguments of the function.

    Returns:
      The pytree with all rows, in NumPy arrays, on every process.
    """
    at_least_one(batch_size, "batch_size")
    at_least_one(len(x), "the number of inputs")
    plan = _Plan(len(x), min(batch_size, len(x)))
    shared = parallel.copy_to(dict(shared), plan.mesh)
    tables = jax.tree.map(np.asarray, dict(rows or {}))
    settings = {"function": function, "mesh": plan.mesh, "options": tuple(options.items())}

    def start(index: np.ndarray) -> Any:
        given = {"x": x[index], **jax.tree.map(lambda table: table[index], tables)}
        if indexed:
            given["index"] = first + index
        return passes.on_mesh(shared, _send(given, plan.mesh), **settings)

    collected = _Collected(plan, memory, progress)
    under_way: collections.deque[tuple[int, Any]] = collections.deque()
    for begin in plan.rounds:
        index = np.minimum(np.arange(begin, begin + plan.at_once), len(x) - 1)
        under_way.append((begin, start(index)))
        if len(under_way) > AHEAD:
            collected.add(*under_way.popleft())
    while under_way:
        collected.add(*under_way.popleft())
    return collected.on_every_process()


def _send(rows: dict[str, Any], mesh: jax.sharding.Mesh) -> dict[str, Array]:
    return jax.device_put(rows, jax.sharding.NamedSharding(mesh, parallel.BY_ROW))


class _Plan:
    """Which rows this process computes, and when.

    Attributes:
      num_rows: all of them.
      mesh: local devices, no more than there are batches for.
      at_once: rows of a round, in which each device takes one batch.
      each: rows of a process.
      rounds: where the rounds of this process begin.
      stop: where its rows end.
    """

    def __init__(self, num_rows: int, size: int):
        batches = -(-num_rows // size)
        batches_each = -(-batches // jax.process_count())
        count = min(jax.local_device_count(), batches_each)
        self.num_rows = num_rows
        self.mesh = parallel.row_mesh(jax.local_devices()[:count])
        self.at_once = count * size
        self.each = batches_each * size
        begin = jax.process_index() * self.each
        # If the last process has fewer rows, it repeats the last one.
        self.stop = min(begin + self.each, num_rows)
        self.rounds = range(begin, max(self.stop, begin + 1), self.at_once)


class _Collected:
    """The results so far, in arrays that have room for all rows."""

    def __init__(self, plan: _Plan, memory: int, progress: Progress | None):
        self.plan, self.memory, self.progress = plan, memory, progress
        self.arrays: Any = None
        self.counted = 0

    def add(self, begin: int, result: Any) -> None:
        """Waits for the result of a round and keeps it."""
        if self.arrays is None:
            self.arrays = jax.tree.map(self._room, result)
        used = max(0, min(self.plan.at_once, self.plan.stop - begin))

        def keep(array, part):
            array[begin : begin + used] = np.asarray(part)[:used]

        jax.tree.map(keep, self.arrays, result)
        self._count(used)

    def _room(self, part: Array) -> np.ndarray:
        return empty((self.plan.num_rows, *part.shape[1:]), part.dtype, self.memory)

    def _count(self, rows: int) -> None:
        self.counted += rows
        if self.progress is not None and rows:
            self.progress(rows)

    def on_every_process(self) -> Any:
        """All rows, including those of other processes."""
        for array in jax.tree.leaves(self.arrays):
            parallel.share_rows(array, self.plan.each)
        self._count(self.plan.num_rows - self.counted)
        return self.arrays
