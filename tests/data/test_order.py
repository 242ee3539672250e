import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invclr_jax import data
from invclr_jax.data import order

sizes = st.integers(1, 50).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))


@settings(deadline=None, max_examples=30)
@given(sizes, st.integers(0, 2**31 - 1), st.integers(0, 5))
def test_an_epoch_shows_each_row_at_most_once(size, seed, epoch):
    num, batch = size
    per_epoch = data.steps_per_epoch(num, batch)
    steps = range(epoch * per_epoch, (epoch + 1) * per_epoch)
    seen = np.concatenate([data.batch_indices(seed, step, num, batch) for step in steps])
    assert len(seen) == num // batch * batch
    assert len(set(seen.tolist())) == len(seen)
    assert set(seen.tolist()) <= set(range(num))


def test_order_depends_on_seed_and_epoch_only():
    batches = [data.batch_indices(3, step, 100, 20) for step in range(10)]
    order.epoch_order.cache_clear()
    again = [data.batch_indices(3, step, 100, 20) for step in reversed(range(10))]
    np.testing.assert_array_equal(batches, again[::-1])
    first, second = np.concatenate(batches[:5]), np.concatenate(batches[5:])
    assert sorted(first) == sorted(second) == list(range(100))
    assert (first != second).sum() > 80
    assert (
        first != np.concatenate([data.batch_indices(4, s, 100, 20) for s in range(5)])
    ).sum() > 80


def test_order_stays_what_it_was():
    # A run that is resumed by a later version must see the same pictures.
    assert data.batch_indices(0, 0, 10, 10).tolist() == [0, 4, 3, 5, 2, 9, 6, 7, 8, 1]
    assert data.batch_indices(7, 5, 10, 4).tolist() == [5, 7, 3, 8]


def test_every_row_is_equally_likely_in_every_place():
    orders = np.stack([order.epoch_order(0, epoch, 8) for epoch in range(4000)])
    counts = np.stack([np.bincount(place, minlength=8) for place in orders.T])
    chi2 = ((counts - 500) ** 2 / 500).sum()  # 49 degrees of freedom
    assert 20 < chi2 < 95


def test_the_order_cannot_be_changed_by_its_user():
    with pytest.raises(ValueError, match="read-only"):
        data.batch_indices(0, 0, 10, 5)[0] = 1


@pytest.mark.parametrize("layout", [(1, 1), (1, 8), (2, 4), (4, 2), (8, 1)])
def test_any_number_of_devices_sees_the_same_batch(layout):
    processes, devices = layout
    batch = data.batch_indices(0, 3, 200, 32)
    parts = [
        order.device_indices(batch, process_index=p, process_count=processes, local_devices=devices)
        for p in range(processes)
    ]
    assert parts[0].shape == (devices, 32 // processes // devices)
    np.testing.assert_array_equal(np.concatenate([part.ravel() for part in parts]), batch)


@pytest.mark.parametrize(
    ("size", "devices", "nearest"),
    [(500, 8, "use 496 or 504"), (7, 8, "use 8"), (0, 4, "use 4"), (513, 2, "use 512 or 514")],
)
def test_indivisible_batches_are_refused_with_the_nearest_sizes(size, devices, nearest):
    with pytest.raises(ValueError, match=f"batch size {size} .*{devices} devices: {nearest}$"):
        data.check_batch_size(size, devices)


@pytest.mark.parametrize("batch", [0, 11])
def test_batches_larger_than_the_data_are_refused(batch):
    with pytest.raises(ValueError, match=f"batch size {batch} .*10 training images: use 1 to 10"):
        data.batch_indices(0, 0, 10, batch)


def test_negative_seeds_are_refused():
    with pytest.raises(ValueError, match="seed -1 is negative"):
        data.batch_indices(-1, 0, 10, 5)
