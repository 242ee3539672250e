import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invclr_jax import data

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(4), [10, 20, 40, 3]))
FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_every_class_keeps_the_same_fraction(fraction):
    kept = data.fraction_indices(LABELS, fraction, seed=1)
    expected = [max(1, round(fraction * n)) for n in (10, 20, 40, 3)]
    assert np.bincount(LABELS[kept]).tolist() == expected
    assert (np.diff(kept) > 0).all()


def test_smaller_fractions_are_part_of_larger_ones():
    kept = [set(data.fraction_indices(LABELS, f, seed=1).tolist()) for f in FRACTIONS]
    assert all(small < large for small, large in itertools.pairwise(kept))
    assert kept[-1] == set(range(len(LABELS)))


def test_the_seed_decides_the_rows():
    first = data.fraction_indices(LABELS, 0.3, seed=1)
    np.testing.assert_array_equal(first, data.fraction_indices(LABELS, 0.3, seed=1))
    assert set(first.tolist()) != set(data.fraction_indices(LABELS, 0.3, seed=2).tolist())


def test_rows_of_a_class_are_equally_likely():
    labels = np.repeat(np.arange(2), 10)
    kept = [data.fraction_indices(labels, 0.3, seed=seed) for seed in range(1000)]
    counts = np.bincount(np.concatenate(kept), minlength=20)
    assert abs(counts - 300).max() < 5 * np.sqrt(1000 * 0.3 * 0.7)


def test_regression_targets_are_drawn_regardless_of_value():
    targets = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    assert len(data.fraction_indices(targets, 0.1)) == 5
    fit, held_out = data.validation_indices(targets, 0.2)
    assert (len(fit), len(held_out)) == (40, 10)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=40),
    st.floats(0.01, 0.99),
    st.integers(0, 10**6),
)
def test_validation_and_fit_share_nothing_and_miss_nothing(labels, fraction, seed):
    fit, held_out = data.validation_indices(np.array(labels), fraction, seed=seed)
    assert sorted([*fit, *held_out]) == list(range(len(labels)))
    assert len(fit) > 0
    assert len(held_out) > 0


def test_validation_is_stratified():
    fit, held_out = data.validation_indices(LABELS, 0.5, seed=3)
    assert np.bincount(LABELS[held_out]).tolist() == [5, 10, 20, 2]
    assert np.bincount(LABELS[fit]).tolist() == [5, 10, 20, 1]


def test_bad_fractions_are_refused():
    for fraction in (0.0, -0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="label fraction"):
            data.fraction_indices(LABELS, fraction)
    for fraction in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="validation fraction"):
            data.validation_indices(LABELS, fraction)
    with pytest.raises(ValueError, match="cannot be split in two"):
        data.validation_indices(LABELS[:1], 0.5)


# ---- samples ----


def rows_of(split, size, seed=0):
    """Which rows a sample takes: pictures hold their number."""
    return data.sample(split, size, seed=seed).images[:, 0, 0, 0].tolist()


def numbered(labels):
    images = np.arange(len(labels), dtype=np.uint8)[:, None, None, None]
    return data.Split(images, np.asarray(labels, np.int32))


def test_a_sample_of_sorted_classes_has_every_class_in_proportion():
    split = numbered(np.repeat(np.arange(4), [20, 40, 80, 4]))
    taken = data.sample(split, 36)
    assert np.bincount(taken.labels).tolist() == [5, 10, 20, 1]
    assert np.bincount(data.sample(split, 4).labels).tolist() == [1, 1, 1, 1]
    assert len(np.unique(data.sample(split, 3).labels)) == 3
    np.testing.assert_array_equal(split.labels[taken.images[:, 0, 0, 0]], taken.labels)


def test_samples_keep_the_order_and_grow():
    split = numbered(LABELS)
    for size in range(1, len(LABELS) + 5):
        rows = rows_of(split, size)
        assert len(rows) == min(size, len(LABELS))
        assert rows == sorted(rows)
        assert size == 1 or set(rows_of(split, size - 1)) <= set(rows)
    assert data.sample(split, len(LABELS)) is split
    assert data.sample(split, None) is split


def test_every_row_is_equally_likely_to_be_sampled():
    split = numbered(np.repeat(np.arange(2), 10))
    taken = np.concatenate([rows_of(split, 6, seed) for seed in range(1000)])
    counts = np.bincount(taken, minlength=20)
    assert abs(counts - 300).max() < 5 * np.sqrt(1000 * 0.3 * 0.7)
    # One row alone: each class as often as the other.
    assert abs(sum(rows_of(split, 1, seed)[0] >= 10 for seed in range(400)) - 200) < 50


def test_samples_without_classes():
    factors = np.arange(40, dtype=np.float32).reshape(10, 4)
    taken = data.sample(data.Split(factors, factors), 4, seed=1)
    np.testing.assert_array_equal(taken.images, taken.labels)
    assert not np.array_equal(taken.images, factors[:4])
    assert data.sample(data.Split(factors), 4, seed=1).labels is None
    with pytest.raises(ValueError, match="sample of 0 rows is empty"):
        data.sample(data.Split(factors), 0)
