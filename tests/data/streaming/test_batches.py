"""Streamed batches: those of the order, resumed, shared by processes, ahead but bounded."""

import collections
import multiprocessing
import os
import signal
import sys

import jax
import numpy as np
import pytest

from invclr_jax import data
from invclr_jax.data.order import WINDOW, block_order
from invclr_jax.data.streaming import batches
from invclr_jax.data.streaming.pictures import Pictures
from tests.data.streaming import made

pytest.importorskip("grain")

LABELS = (np.arange(50) % 3).astype(np.int32)


class Drawn:
    """A source that draws its pictures."""

    def __init__(self, count=50, blocks=None):
        self.count = count
        if blocks:
            self.blocks = blocks

    def __len__(self):
        return self.count

    def __getitem__(self, row):
        return made.encoded(made.picture(row, row % 3), "PNG")

    def name(self, row):
        return f"drawing {row}"


def split(workers=0, source=None):
    return data.Split(Pictures(source or Drawn(), (6, 6, 3), workers=workers), LABELS)


def collect(chosen, **options):
    """Step -> what the devices were given, put together."""
    options = {"seed": 1, "batch_size": 16, "num_steps": 7} | options
    with data.make_feed(chosen, **options) as feed:
        return {
            step: jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:]), rows)
            for step, (rows, _) in feed
        }


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_those_of_the_order(workers):
    chosen = split(workers)
    found = collect(chosen)
    assert list(found) == list(range(7))
    for step, rows in found.items():
        expected = data.batch_indices(1, step, 50, 16)
        np.testing.assert_array_equal(rows["image"], chosen.images[expected])
        np.testing.assert_array_equal(rows["label"], LABELS[expected])


def test_a_batch_of_several_parts_and_a_later_start(monkeypatch):
    monkeypatch.setattr(batches, "PART", 5)
    whole = collect(split())
    rest = collect(split(), start_step=4)
    assert list(rest) == [4, 5, 6]
    for step, rows in rest.items():
        np.testing.assert_array_equal(rows["image"], whole[step]["image"])
    assert collect(split(), start_step=7) == {}


def test_processes_share_a_batch():
    parts = [collect(split(), batch_size=32, process_index=p, process_count=2) for p in range(2)]
    for step in range(7):
        both = np.concatenate([part[step]["label"] for part in parts])
        np.testing.assert_array_equal(both, LABELS[data.batch_indices(1, step, 50, 32)])


def test_blocks_are_read_one_after_another():
    blocks = (7, 3, 10, 5, 9, 6, 10)
    chosen = split(source=Drawn(blocks=blocks))
    found = collect(chosen, num_steps=3)
    for step, rows in found.items():
        expected = data.batch_indices(1, step, 50, 16, blocks)
        np.testing.assert_array_equal(rows["image"], chosen.images[expected])


def test_block_order_is_a_permutation_that_stays_near():
    blocks = tuple(np.random.default_rng(0).integers(1, 40, 100).tolist())
    order = block_order(3, 0, blocks)
    assert sorted(order) == list(range(sum(blocks)))
    block = np.repeat(np.arange(100), blocks)[order]
    first = [np.flatnonzero(block == b)[0] for b in range(100)]
    last = [np.flatnonzero(block == b)[-1] for b in range(100)]
    assert max(np.subtract(last, first)) < WINDOW * 40
    assert np.corrcoef(order, np.arange(len(order)))[0, 1] < 0.5
    assert (order != block_order(3, 1, blocks)).any()
    assert (order != block_order(4, 0, blocks)).any()


def test_no_more_is_read_than_is_needed_soon():
    read = []

    class Counted(Drawn):
        def __getitem__(self, row):
            read.append(row)
            return super().__getitem__(row)

    with data.make_feed(split(source=Counted()), seed=1, batch_size=16, num_steps=500) as feed:
        steps = iter(feed)
        for _ in range(3):
            next(steps)
    # Batches taken, those of the feed, those that wait, and those that threads work on.
    threads = os.cpu_count()
    assert 3 * 16 <= len(read) <= 16 * (3 + 3 + threads * batches.BUFFERED + threads + 1)


def test_a_stream_is_never_kept_on_the_devices():
    with pytest.raises(ValueError, match="streamed pictures cannot be kept on the devices"):
        data.make_feed(split(), seed=1, batch_size=16, num_steps=1, on_device=True)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_damaged_picture_reaches_the_loop_as_a_sentence(tmp_path, workers):
    made.make_folder(tmp_path)
    (tmp_path / "train" / "owl" / "002.png").write_bytes(b"nonsense")
    dataset = data.load("stream", path=tmp_path, size=6, workers=workers, statistics=0)
    with pytest.raises(ValueError, match=r"owl/002.png cannot be read .*replace or remove it"):
        collect(dataset.train)


def test_without_grain_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "grain", None)
    with pytest.raises(ValueError, match="pip install 'invclr_jax\\[stream\\]'"):
        collect(split())


@pytest.mark.slow
def test_workers_leave_the_signals_of_a_scheduler_to_the_training_process():
    with data.make_feed(split(workers=1), seed=1, batch_size=16, num_steps=40) as feed:
        next(iter(feed))
        (worker,) = multiprocessing.active_children()
        os.kill(worker.pid, signal.SIGTERM)
        os.kill(worker.pid, signal.SIGINT)
        assert len(list(feed)) == 39
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_dead_worker_is_a_sentence():
    with data.make_feed(split(workers=1), seed=1, batch_size=16, num_steps=10**6) as feed:
        next(iter(feed))
        multiprocessing.active_children()[0].kill()
        with pytest.raises(ValueError, match="a process that reads pictures died"):
            collections.deque(feed, maxlen=0)
