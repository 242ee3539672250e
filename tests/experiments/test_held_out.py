"""kNN on held-out rows against NumPy."""

import numpy as np

from experiments import held_out
from invclr_jax.checkpoint import load_encoder
from tests.tiny_run import make_run, tiny_config, tiny_images


def test_the_first_rows_vote_on_the_last_ones(tmp_path, monkeypatch):
    data = tiny_images()
    make_run(tmp_path, tiny_config("arrays"), data)
    monkeypatch.setattr(held_out, "load", lambda name, path: data)
    monkeypatch.setattr(held_out, "HELD_OUT", 20)
    encoder = load_encoder(tmp_path)
    found = held_out.measure(encoder, None)
    assert found.keys() == held_out.COLUMNS.keys()

    z = np.asarray(encoder.encode(data.train.images), np.float64)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    weight = np.exp((z[-20:] @ z[:-20].T) / 0.1)  # all 76 rows vote
    votes = weight @ np.eye(3)[data.train.labels[:-20]]
    right = np.mean(votes.argmax(1) == data.train.labels[-20:])
    np.testing.assert_allclose(found["knn"], 100 * right)
