import numpy as np
import pytest

from invclr_jax import data


def test_the_papers_size_and_form():
    dataset = data.load("spirograph")
    assert dataset.train.images.shape == (100_000, 4)
    assert dataset.test.images.shape == (20_000, 4)
    assert dataset.train.images.dtype == np.float32
    np.testing.assert_array_equal(dataset.train.images, dataset.train.labels)
    assert dataset.num_classes is None
    assert dataset.mean is None
    assert dataset.label_names == ("m", "b", "sigma", "f_r")


def test_factors_are_uniform_and_independent():
    factors = data.load("spirograph", seed=5, num_train=50_000, num_test=1).train.images
    low, high = np.array([2, 0.1, 0.25, 0.4]), np.array([5, 1.1, 1, 1])
    uniform = (factors - low) / (high - low)
    assert uniform.min() >= -1e-6
    assert uniform.max() <= 1 + 1e-6
    for column in uniform.T:
        gap = np.abs(np.sort(column) - np.linspace(0, 1, len(column))).max()
        assert gap * np.sqrt(len(column)) < 2  # Kolmogorov-Smirnov, p = 0.0007
    correlation = np.corrcoef(uniform.T) - np.eye(4)
    assert np.abs(correlation).max() < 5 / np.sqrt(len(uniform))


def test_seeds_and_sizes():
    one, other = (data.load("spirograph", seed=s, num_train=20, num_test=20) for s in (1, 2))
    longer = data.load("spirograph", seed=1, num_train=30, num_test=20)
    assert not np.isin(one.train.images, other.train.images).any()
    assert not np.isin(one.train.images, one.test.images).any()
    np.testing.assert_array_equal(longer.train.images[:20], one.train.images)
    np.testing.assert_array_equal(longer.test.images, one.test.images)


def test_empty_sizes_and_paths_are_refused(tmp_path):
    with pytest.raises(ValueError, match="num_train is 0"):
        data.load("spirograph", num_train=0)
    with pytest.raises(ValueError, match="num_test is -1"):
        data.load("spirograph", num_test=-1)
    with pytest.raises(ValueError, match="spirograph is generated, not read"):
        data.load("spirograph", path=tmp_path)
