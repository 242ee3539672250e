"""Features that a command writes are those of `Encoder.represent`, whatever the batch size."""

import jax
import numpy as np
import pytest

from invclr_jax.checkpoint import load_encoder
from invclr_jax.evaluation.extraction import check_input, extract, read_inputs, write_npz
from tests.tiny_run import make_run, tiny_config, tiny_images


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("run")
    make_run(workdir, tiny_config("arrays"), tiny_images())
    return load_encoder(workdir)


X = tiny_images().test.images[:11]


def test_the_batch_size_decides_no_bit(encoder):
    whole = extract(encoder, X, num_samples=3, seed=5, batch_size=11)
    for size in (4, 7, 500):
        parts = extract(encoder, X, num_samples=3, seed=5, batch_size=size)
        np.testing.assert_array_equal(parts, whole)


def test_features_are_those_of_represent(encoder):
    expected = encoder.represent(X, jax.random.key(5), 3)
    np.testing.assert_array_equal(extract(encoder, X, num_samples=3, seed=5), expected)
    other = extract(encoder, X, num_samples=3, seed=6)
    assert np.abs(other - expected).max() > 1e-3


def test_plain_images_are_encoded_as_they_are(encoder):
    plain = extract(encoder, X, num_samples=0, batch_size=4)
    np.testing.assert_allclose(plain, encoder.encode(X), rtol=1e-5, atol=1e-6)


FLOATS = np.zeros((2, 8, 8, 5), np.float32)


def test_images_of_any_number_of_channels_and_factors_are_taken():
    check_input("images", FLOATS, factors=False)
    check_input("images", FLOATS[..., :1].astype(np.uint8), factors=False)
    check_input("factors", FLOATS[:, 0, 0], factors=True)


@pytest.mark.parametrize(
    ("array", "factors", "words"),
    [
        (FLOATS[0], False, r"shape \(8, 8, 5\): expected images"),
        (FLOATS[:0], False, "expected images"),
        (FLOATS, True, "expected factors"),
        (FLOATS + 2, False, r"floats in \[0, 1\]"),
        (FLOATS.astype(int), False, "use uint8"),
        (FLOATS[:, 0, 0] * np.nan, True, "finite floats"),
    ],
)
def test_other_arrays_are_refused(array, factors, words):
    with pytest.raises(ValueError, match=words):
        check_input("mine", array, factors=factors)


def test_arrays_of_any_name_are_written_and_read_again(tmp_path):
    arrays = {"file": X, "allow_pickle": np.arange(3), "a b": np.float32([[0.5]])}
    write_npz(tmp_path / "new" / "out.npz", arrays)
    again = read_inputs(tmp_path / "new" / "out.npz", 8)
    assert set(again) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(again[name], array)
        assert again[name].dtype == array.dtype


def test_a_missing_input_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere .*does not exist"):
        read_inputs(tmp_path / "nowhere", 8)
