"""Everything the project knows about devices: the axis name, reductions over it, replication.

Under `jax.pmap` each device differentiates its own share of a loss, and collectives pass cotangents
between devices, so `jax.grad` of the local loss is the gradient of the *sum* of all local losses;
`mean_over_devices` of it is the gradient of their mean. With `axis=None` every function here is the
single-device identity, so that the same code runs outside `pmap`.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

AXIS = "devices"
"""Name of the axis that the training step is mapped over."""

Axis = str | None
"""A mapped axis name, or None outside `pmap`."""

Devices = Sequence[jax.Device] | None
"""Some local devices, or None for all of them."""


BY_ROW = jax.sharding.PartitionSpec(AXIS)
WHOLE = jax.sharding.PartitionSpec()


def axis_size(axis: Axis) -> int:
    """Number of devices along `axis` (1 outside `pmap`)."""
    return 1 if axis is None else jax.lax.axis_size(axis)


def device_index(axis: Axis) -> Array | int:
    """Position of this device along `axis` (0 outside `pmap`)."""
    return 0 if axis is None else jax.lax.axis_index(axis)


def mean_over_devices(tree: Any, axis: Axis) -> Any:
    """Averages every leaf over the devices."""
    return tree if axis is None else jax.lax.pmean(tree, axis)


def sum_over_devices(tree: Any, axis: Axis) -> Any:
    """Adds every leaf up over the devices."""
    return tree if axis is None else jax.lax.psum(tree, axis)


def mean_over_neighbours(tree: Any, axis: Axis, count: int) -> Any:
    """Averages every leaf over each run of `count` neighbouring devices."""
    if axis is None or count == 1:
        return tree
    size = axis_size(axis)
    runs = [list(range(start, start + count)) for start in range(0, size, count)]
    return jax.lax.pmean(tree, axis, axis_index_groups=runs if len(runs) > 1 else None)


def gather_rows(rows: Array, axis: Axis) -> Array:
    """Stacks the rows `[n, ...]` of all devices into `[devices * n, ...]`; gradients flow back."""
    return rows if axis is None else jax.lax.all_gather(rows, axis, tiled=True)


def local_rows(rows: Any, axis: Axis) -> Any:
    """This device's part of rows `[devices * n, ...]` that every device holds whole."""
    if axis is None:
        return rows

    def take(leaf):
        count = leaf.shape[0] // axis_size(axis)
        return jax.lax.dynamic_slice_in_dim(leaf, device_index(axis) * count, count)

    return jax.tree.map(take, rows)


def shard_rows(rows: Any, num_devices: int) -> Any:
    """Splits the leading axis `[devices * n, ...]` into `[devices, n, ...]`."""
    return jax.tree.map(lambda r: r.reshape(num_devices, -1, *r.shape[1:]), rows)


def replicate(tree: Any, devices: Devices = None) -> Any:
    """Copies every leaf to all local `devices`, adding the leading axis that `pmap` expects."""
    sharding = _over(devices)
    if sharding.num_devices == 1 and all(map(_is_free, jax.tree.leaves(tree))):
        # Not through the host, which would wait for arrays that are still being computed.
        return jax.jit(_with_leading_axis, out_shardings=sharding)(tree)

    def copy(leaf):
        rows = np.asarray(leaf)[None]
        shape = (sharding.num_devices, *rows.shape[1:])
        return jax.make_array_from_callback(shape, sharding, lambda _: rows)

    return jax.tree.map(copy, tree)


def _is_free(leaf: Any) -> bool:
    """Whether JAX holds the array and may use it on any device."""
    return isinstance(leaf, jax.Array) and not leaf.committed


def _with_leading_axis(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[None], tree)


def distribute(tree: Any, devices: Devices = None) -> Any:
    """Sends entry i of every leaf `[devices, ...]` to local device i, ready for `pmap`."""
    return jax.device_put(tree, _over(devices))


def row_mesh(devices: Devices = None) -> jax.sharding.Mesh:
    """A mesh of one axis, over which rows are divided."""
    return jax.sharding.Mesh(np.array(devices or jax.local_devices()), (AXIS,))


def _over(devices: Devices) -> jax.sharding.NamedSharding:
    return jax.sharding.NamedSharding(row_mesh(devices), BY_ROW)


def copy_to(tree: Any, mesh: jax.sharding.Mesh) -> Any:
    """Every leaf whole on each of the mesh's devices, all of them of this process."""
    return jax.device_put(tree, jax.sharding.NamedSharding(mesh, WHOLE))


def divide(tree: Any, mesh: jax.sharding.Mesh) -> Any:
    """Divides rows over the mesh's devices, those of other processes among them.

    Every process holds all rows on its host, perhaps in a file, and sends its own part of them.
    Zeros fill up the last devices.

    Args:
      tree: NumPy arrays with one number of rows.
      mesh: of `row_mesh`.
    """
    sharding = jax.sharding.NamedSharding(mesh, BY_ROW)

    def place(rows):
        size = -(-len(rows) // mesh.size) * mesh.size

        def part(index):
            start, stop, _ = index[0].indices(size)
            inside = rows[start:stop]
            missing = stop - start - len(inside)
            return np.pad(inside, ((0, missing), *[(0, 0)] * (rows.ndim - 1)))

        return jax.make_array_from_callback((size, *rows.shape[1:]), sharding, part)

    return jax.tree.map(place, tree)


def share_rows(rows: np.ndarray, each: int, *, block: int = 4096) -> None:
    """Completes rows of which process p has computed `p * each` up to `(p + 1) * each`.

    Args:
      rows: the same array on every process, filled in place.
      each: rows of a process; the last ones may have fewer.
      block: rows of each process that travel at a time.
    """
    if jax.process_count() == 1:
        return
    from jax.experimental import multihost_utils

    for offset in range(0, each, block):
        starts = [process * each + offset for process in range(jax.process_count())]
        count = min(block, each - offset)
        own = np.minimum(starts[jax.process_index()] + np.arange(count), len(rows) - 1)
        gathered = np.asarray(multihost_utils.process_allgather(np.asarray(rows[own])))
        for start, part in zip(starts, gathered, strict=True):
            there = max(0, min(count, len(rows) - start))
            rows[start : start + there] = part[:there]


def unreplicate(tree: Any) -> Any:
    """The first device's copy of every leaf, in NumPy arrays of their own.

    JAX would compile a program for each shape to drop the leading axis, and a view of the device's
    memory would change under a step that reuses it.
    """
    return jax.tree.map(lambda leaf: np.array(leaf.addressable_data(0))[0], tree)
