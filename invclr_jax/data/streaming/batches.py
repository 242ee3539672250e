"""Batches of streamed pictures, read ahead by grain's worker processes.

What a step sees is a pure function of (seed, step): the pipeline runs over the numbers of
pictures, which workers compute themselves, so there is no state to save, and resuming means
starting at another step. Workers hand over parts of a batch, a few at a time: memory is bounded by
`workers · BUFFERED · PART` pictures and the batches in flight.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from absl import flags
from jaxtyping import Int

from invclr_jax import cpu
from invclr_jax.data.streaming.pictures import Pictures

PART = 32
"""Pictures that a worker sends in one message."""

BUFFERED = 4
"""Largest number of a worker's messages that wait to be taken."""

Rows = Callable[[int], Int[np.ndarray, " local"]]


class _Parts:
    """Random access to parts of batches: what grain calls a source.

    Args:
      pictures: what to read.
      rows: step -> the pictures of this process, `[local]`.
      steps: the steps to come.
      local: how many each has.
    """

    def __init__(self, pictures: Pictures, rows: Rows, steps: range, local: int):
        self.pictures, self.rows, self.steps = pictures, rows, steps
        self.parts = -(-local // PART)

    def __len__(self) -> int:
        return len(self.steps) * self.parts

    def __getitem__(self, number: int) -> dict[str, Any]:
        step, part = divmod(number, self.parts)
        rows = np.array_split(self.rows(self.steps[step]), self.parts)[part]
        read = [self.pictures.read(row) for row in rows.tolist()]
        amiss = tuple(substitute for _, substitute in read if substitute is not None)
        return {"image": np.stack([image for image, _ in read]), "amiss": amiss}


def stream(
    pictures: Pictures, rows: Rows, steps: range, local: int
) -> Generator[np.ndarray, None, None]:
    """The pictures of each step, `[local, h, w, c]`, in order.

    Pictures that could not be read are named once each and counted at the end.

    Args:
      pictures: what to read.
      rows: step -> the pictures of this process, `[local]`; a function that can be pickled.
      steps: which steps.
      local: how many pictures each has.
    """
    source = _Parts(pictures, rows, steps, local)
    parts = _read_ahead(source, pictures.workers)
    try:
        for _ in steps:
            batch = [_next(parts) for _ in range(source.parts)]
            for part in batch:
                pictures.amiss.note(part["amiss"])
            yield np.concatenate([part["image"] for part in batch])
    finally:
        parts.close()
        pictures.amiss.summarise()


def _read_ahead(source: _Parts, workers: int) -> Any:
    """An iterator over the source; with workers, in their own processes."""
    try:
        import grain
    except ModuleNotFoundError:
        raise ValueError(
            "streaming needs grain, which is not installed: pip install 'invclr_jax[stream]'"
        ) from None
    if not flags.FLAGS.is_parsed():  # grain reads flags of its own, even in a notebook
        flags.FLAGS.mark_as_parsed()
    threads = 1 if workers else os.cpu_count() or 1
    options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=threads * BUFFERED)
    dataset = grain.MapDataset.source(source).to_iter_dataset(options)
    if workers:
        dataset = dataset.mp_prefetch(
            grain.MultiprocessingOptions(num_workers=workers, per_worker_buffer_size=BUFFERED),
            worker_init_fn=_prepare_worker,
        )
    return iter(dataset)


def _prepare_worker(index: int, count: int) -> None:
    """Leaves signals to the training process, and keeps the memory of pictures for the next ones.

    A scheduler that preempts a job, and Ctrl-C, signal all of its processes. The training process
    then saves a checkpoint and ends its workers in another way. If it is killed, they exit too.
    """
    del index, count
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    cpu.keep_freed_memory()
    threading.Thread(target=_go_with_parent, daemon=True).start()


def _go_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _next(parts: Any) -> dict[str, Any]:
    try:
        return next(parts)
    except ValueError:
        raise
    except Exception as error:  # grain's own, and what pickling made of a worker's
        lines = str(error).strip().splitlines() or [type(error).__name__]
        told = [line for line in lines if line.startswith("ValueError: ")]
        if told:
            raise ValueError(told[-1].removeprefix("ValueError: ")) from error
        raise ValueError(
            f"a process that reads pictures died ({lines[-1]}): check for lack of memory, lower "
            "workers (config.data.stream.workers; 0 reads in this process), and start again; the "
            "run resumes from its newest checkpoint"
        ) from error
