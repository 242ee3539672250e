"""Which rows a step sees: a pure function of (seed, step), the same on any number of devices."""

import functools

import numpy as np
from jaxtyping import Int32

from invclr_jax.data.randomness import generator


@functools.lru_cache(maxsize=4)
def epoch_order(seed: int, epoch: int, num_examples: int) -> Int32[np.ndarray, " n"]:
    """The order of all rows in one epoch, a permutation `[num_examples]` (read-only)."""
    order = generator(seed, "order", epoch).permutation(num_examples).astype(np.int32)
    order.flags.writeable = False
    return order


WINDOW = 16
"""Blocks whose rows are mixed together."""


@functools.lru_cache(maxsize=4)
def block_order(seed: int, epoch: int, blocks: tuple[int, ...]) -> Int32[np.ndarray, " n"]:
    """An order of all rows that takes neighbouring rows at about the same time (read-only).

    Blocks come in random order, and rows in random order within each window of them.

    Args:
      seed: of the run.
      epoch: counted from 0.
      blocks: rows in each block.
    """
    rng = generator(seed, "block order", epoch)
    ends = np.cumsum(blocks)
    windows = np.split(rng.permutation(len(blocks)), range(WINDOW, len(blocks), WINDOW))
    rows = [
        np.concatenate([np.arange(ends[block] - blocks[block], ends[block]) for block in window])
        for window in windows
    ]
    order = np.concatenate([rng.permutation(part) for part in rows]).astype(np.int32)
    order.flags.writeable = False
    return order


def steps_per_epoch(num_examples: int, batch_size: int) -> int:
    """Complete batches in an epoch; the incomplete one at its end is dropped."""
    if not 1 <= batch_size <= num_examples:
        raise ValueError(
            f"batch size {batch_size} does not fit {num_examples} training images: "
            f"use 1 to {num_examples}"
        )
    return num_examples // batch_size


def batch_indices(
    seed: int,
    step: int,
    num_examples: int,
    batch_size: int,
    blocks: tuple[int, ...] | None = None,
) -> Int32[np.ndarray, " batch"]:
    """Rows of the global batch of a step, `[batch_size]`.

    Args:
      seed: of the run.
      step: counted from 0 over all epochs.
      num_examples: rows of the training set.
      batch_size: of the global batch, over all processes and devices.
      blocks: rows in each block of data that is read by blocks, see `block_order`.

    Returns:
      Indices into the training set; within an epoch no row occurs twice.
    """
    epoch, batch = divmod(step, steps_per_epoch(num_examples, batch_size))
    if blocks is None:
        order = epoch_order(seed, epoch, num_examples)
    else:
        order = block_order(seed, epoch, blocks)
    return order[batch * batch_size : (batch + 1) * batch_size]


def check_batch_size(batch_size: int, num_devices: int) -> None:
    """Refuses a global batch that does not divide evenly over all devices."""
    if batch_size >= 1 and batch_size % num_devices == 0:
        return
    below = batch_size // num_devices * num_devices
    nearest = f"{below} or {below + num_devices}" if below > 0 else f"{num_devices}"
    raise ValueError(
        f"batch size {batch_size} does not divide evenly over {num_devices} devices: use {nearest}"
    )


def device_indices(
    indices: Int32[np.ndarray, " batch"],
    *,
    process_index: int,
    process_count: int,
    local_devices: int,
) -> Int32[np.ndarray, "devices per_device"]:
    """This process's part of a global batch, `[local_devices, per_device]`.

    The batch is cut into contiguous pieces, one per device, in the order of all devices, so that
    putting the pieces of all devices together gives the same batch on any number of them.
    """
    check_batch_size(len(indices), process_count * local_devices)
    return indices.reshape(process_count, local_devices, -1)[process_index]
