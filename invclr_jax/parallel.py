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


def axis_size(axis: Axis) -> int:
    """Number of devices along `axis` (1 outside `pmap`)."""
    return 1 if axis is None else jax.lax.axis_size(axis)


def device_index(axis: Axis) -> Array | int:
    """Position of this device along `axis` (0 outside `pmap`)."""
    return 0 if axis is None else jax.lax.axis_index(axis)


def mean_over_devices(tree: Any, axis: Axis) -> Any:
    """Averages every leaf over the devices."""
    return tree if axis is None else jax.lax.pmean(tree, axis)


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


def _over(devices: Devices) -> jax.sharding.NamedSharding:
    mesh = jax.sharding.Mesh(np.array(devices or jax.local_devices()), (AXIS,))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(AXIS))


def unreplicate(tree: Any) -> Any:
    """The first device's copy of every leaf, in NumPy arrays of their own.

    JAX would compile a program for each shape to drop the leading axis, and a view of the device's
    memory would change under a step that reuses it.
    """
    return jax.tree.map(lambda leaf: np.array(leaf.addressable_data(0))[0], tree)
