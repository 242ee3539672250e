"""A pass over data: one device or eight or two processes, the same bits; memory and waiting."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from invclr_jax.evaluation import features, passes, storage
from invclr_jax.evaluation import sweep as sweep_module
from invclr_jax.evaluation.sweep import AHEAD, sweep
from tests.evaluation.test_features import KEY, TRANSFORM, X, encode


def on_one_device(monkeypatch):
    monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def everything(encoder, x, batch_size):
    """Each kind of pass once."""
    given, options = (encoder.encode_inputs, encoder.transform, x), {"batch_size": batch_size}
    alpha, beta = encoder.transform.sample(KEY, len(x))
    return {
        "plain": features.plain_features(*given, **options),
        "averages": features.average_features_curve(*given, KEY, [1, 3], **options),
        "each": features.transformed_features(*given, KEY, 3, **options),
        "conditional": features.conditional_features(*given, KEY, 3, **options),
        "given": features.features_at(*given, alpha, beta, **options),
        "encoded": encoder.encode(x, batch_size=batch_size),
    }


def test_eight_devices_give_the_bits_of_one(pictures, monkeypatch):
    x = pictures.train.images[:45]  # of nine batches, the last round has one
    eight = everything(pictures.encoder, x, 5)
    on_one_device(monkeypatch)
    one = everything(pictures.encoder, x, 5)
    jax.tree.map(np.testing.assert_array_equal, eight, one)
    assert np.ptp(one["plain"], axis=0).max() > 0


def test_all_devices_are_used_and_no_more_than_there_are_batches(monkeypatch):
    used = []
    original = passes.on_mesh

    def watched(shared, rows, **options):
        used.append((options["mesh"].size, len(rows["x"])))
        return original(shared, rows, **options)

    monkeypatch.setattr(passes, "on_mesh", watched)
    features.plain_features(encode, TRANSFORM, np.repeat(X, 3, axis=0), batch_size=2)
    assert used == [(8, 16), (8, 16)]  # 21 rows
    used.clear()
    features.plain_features(encode, TRANSFORM, X, batch_size=3)
    assert used == [(3, 9)]


def test_any_object_with_rows_is_taken_and_numbers_may_start_anywhere():
    class Rows:
        def __len__(self):
            return 7

        def __getitem__(self, index):
            return X[index]

    whole = features.average_features(encode, TRANSFORM, Rows(), KEY, 3, batch_size=2)
    np.testing.assert_array_equal(
        whole, features.average_features(encode, TRANSFORM, X, KEY, 3, batch_size=2)
    )
    rest = features.average_features(encode, TRANSFORM, X[4:], KEY, 3, batch_size=2, first=4)
    np.testing.assert_array_equal(rest, whole[4:])


def test_the_host_is_a_few_rounds_ahead_and_no_more(monkeypatch):
    on_one_device(monkeypatch)
    events = []

    @dataclasses.dataclass
    class Watched:
        def __len__(self):
            return 20

        def __getitem__(self, index):
            events.append("read")
            return np.zeros((len(index), 1), np.float32)

    def double(x):
        return 2 * x

    found = sweep(double, {}, Watched(), 2, progress=lambda rows: events.append("done"))
    assert found.shape == (20, 1)
    open_rounds = np.cumsum([1 if event == "read" else -1 for event in events])
    assert open_rounds.max() == AHEAD + 1  # before the first result is waited for
    assert events.count("read") == events.count("done") == 10


@pytest.mark.parametrize("memory", [0, 10**6])
def test_large_results_lie_in_a_file(memory, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    whole = features.average_features_curve(encode, TRANSFORM, X, KEY, [1, 2], batch_size=3)
    found = features.average_features_curve(
        encode, TRANSFORM, X, KEY, [1, 2], batch_size=3, memory=memory
    )
    for m, z in found.items():
        assert isinstance(z, np.memmap) == (memory == 0)
        np.testing.assert_array_equal(z, whole[m])
    assert not list(tmp_path.iterdir()), "the file has no name"


def test_an_array_is_mapped_from_its_first_byte_too_many():
    assert not isinstance(storage.empty((3, 4), np.float32, 48), np.memmap)
    mapped = storage.empty((3, 4), np.float32, 47)
    mapped[1] = 5
    np.testing.assert_array_equal(np.asarray(mapped).sum(1), [0, 20, 0])


def test_weights_are_sent_once(monkeypatch):
    sent = []
    original = sweep_module.parallel.copy_to
    monkeypatch.setattr(sweep_module.parallel, "copy_to", lambda *a: sent.append(a) or original(*a))
    encoder = Partial(lambda w, images: w * encode(images), jnp.float32(2))
    features.plain_features(encoder, TRANSFORM, np.repeat(X, 9, axis=0), batch_size=2)
    assert len(sent) == 1
