import threading

import jax
import numpy as np
import pytest

from invclr_jax import data
from invclr_jax.data import feed as feed_module

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (50, 4, 4, 3), dtype=np.uint8)
LABELS = RNG.integers(0, 10, 50).astype(np.int32)
SPLIT = data.Split(IMAGES, LABELS)

gather = jax.pmap(lambda rows, indices: jax.tree.map(lambda leaf: leaf[indices], rows))


def collect(split=SPLIT, **options):
    """Steps and what a step would gather, devices put together."""
    options = {"seed": 1, "batch_size": 16, "num_steps": 7} | options
    with data.make_feed(split, **options) as feed:
        return {
            step: jax.tree.map(
                lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:]), gather(rows, indices)
            )
            for step, (rows, indices) in feed
        }


@pytest.mark.parametrize("on_device", [True, False, "auto"])
def test_batches_are_those_of_the_order(on_device):
    found = collect(on_device=on_device)
    assert list(found) == list(range(7))
    for step, rows in found.items():
        expected = data.batch_indices(1, step, 50, 16)
        np.testing.assert_array_equal(rows["image"], IMAGES[expected])
        np.testing.assert_array_equal(rows["label"], LABELS[expected])
        assert rows["image"].dtype == np.uint8


@pytest.mark.parametrize("on_device", [True, False])
def test_resuming_goes_on_where_it_stopped(on_device):
    whole = collect(on_device=on_device)
    rest = collect(on_device=on_device, start_step=4)
    assert list(rest) == [4, 5, 6]
    for step, rows in rest.items():
        np.testing.assert_array_equal(rows["image"], whole[step]["image"])


@pytest.mark.parametrize("on_device", [True, False])
@pytest.mark.parametrize("start", [7, 9])
def test_a_finished_run_has_no_more_batches(on_device, start):
    assert collect(on_device=on_device, start_step=start) == {}


@pytest.mark.parametrize("on_device", [True, False])
def test_processes_share_a_batch(on_device):
    parts = [
        collect(on_device=on_device, batch_size=32, process_index=p, process_count=2)
        for p in range(2)
    ]
    for step in range(7):
        both = np.concatenate([part[step]["label"] for part in parts])
        np.testing.assert_array_equal(both, LABELS[data.batch_indices(1, step, 50, 32)])


def test_arrays_are_ready_for_pmap():
    for on_device, rows_each in ((True, 50), (False, 2)):
        with data.make_feed(SPLIT, seed=0, batch_size=16, num_steps=1, on_device=on_device) as feed:
            ((_, (rows, indices)),) = feed
        assert rows["image"].shape == (8, rows_each, 4, 4, 3)
        assert indices.shape == (8, 2)
        for leaf in (rows["image"], rows["label"], indices):
            devices = [shard.device for shard in leaf.addressable_shards]
            assert devices == jax.local_devices()


def test_without_labels():
    assert set(collect(data.Split(IMAGES), on_device=False)[0]) == {"image"}


def test_the_host_feed_works_ahead_and_no_further(monkeypatch):
    asked = []
    original = feed_module.batch_indices

    def watched(seed, step, *rest):
        asked.append(step)
        return original(seed, step, *rest)

    monkeypatch.setattr(feed_module, "batch_indices", watched)
    with data.make_feed(SPLIT, seed=0, batch_size=16, num_steps=100, on_device=False) as feed:
        batches = iter(feed)
        for _ in range(3):
            next(batches)
    assert asked == list(range(len(asked)))
    assert 3 <= len(asked) <= 3 + feed_module.AHEAD


def threads():
    return [t for t in threading.enumerate() if t.name.startswith("host feed")]


def test_closing_ends_the_thread():
    feed = data.make_feed(SPLIT, seed=0, batch_size=16, num_steps=100, on_device=False)
    next(iter(feed))
    assert len(threads()) == 1
    feed.close()
    feed.close()
    assert not threads()


def test_errors_in_the_thread_reach_the_loop(monkeypatch):
    def broken(seed, step, *rest):
        if step == 2:
            raise RuntimeError("disk on fire")
        return data.batch_indices(seed, step, *rest)

    monkeypatch.setattr(feed_module, "batch_indices", broken)
    seen = []
    with (
        pytest.raises(RuntimeError, match="disk on fire"),
        data.make_feed(SPLIT, seed=0, batch_size=16, num_steps=9, on_device=False) as feed,
    ):
        seen.extend(step for step, _ in feed)
    assert seen == [0, 1] or seen == []  # extend takes all or nothing
    assert not threads()


def test_large_data_stays_on_the_host(monkeypatch):
    assert feed_module.fits_on_devices(SPLIT)
    monkeypatch.setattr(feed_module, "UNKNOWN_MEMORY", 8 * SPLIT.images.nbytes)
    assert not feed_module.fits_on_devices(SPLIT)
    with data.make_feed(SPLIT, seed=0, batch_size=16, num_steps=1) as feed:
        ((_, (rows, _)),) = feed
    assert rows["image"].shape[:2] == (8, 2)


def test_bad_batches_are_refused_at_once():
    with pytest.raises(ValueError, match=r"batch size 20 .*8 devices: use 16 or 24"):
        data.make_feed(SPLIT, seed=0, batch_size=20, num_steps=1)
    with pytest.raises(ValueError, match=r"batch size 24 .*16 devices: use 16 or 32"):
        data.make_feed(SPLIT, seed=0, batch_size=24, num_steps=1, process_count=2)
    with pytest.raises(ValueError, match=r"batch size 64 .*50 training images"):
        data.make_feed(SPLIT, seed=0, batch_size=64, num_steps=1)
