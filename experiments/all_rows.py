"""CIFAR again, fairly: every row, standardised features, l2 chosen on held-out rows, and kNN.

The records' probe has a fixed l2, which favours features
of large variance, and 4000 training rows. `experiments.checkpoints` measures it.
"""

import jax.numpy as jnp
import numpy as np

from invclr_jax.checkpoint import Encoder
from invclr_jax.data import load
from invclr_jax.evaluation.features import plain_features
from invclr_jax.evaluation.knn import knn_predict
from invclr_jax.evaluation.selection import choose_l2

GRID = tuple(10.0**power for power in range(-6, 0))
COLUMNS = {"probe": "probe, %", "knn": "kNN, %", "error": "binomial error, %", "l2": "l2"}


def score(train, test, labels, test_labels, num_classes: int) -> dict[str, float]:
    """All columns.

    Args:
      train: features of the training rows, `[n, d]`.
      test: of the test rows, `[t, d]`.
      labels: classes of the training rows.
      test_labels: of the test rows.
      num_classes: how many there are.
    """
    mean, std = train.mean(0, keepdims=True), train.std(0, keepdims=True)
    scaled, test_scaled = ((rows - mean) / np.where(std > 0, std, 1) for rows in (train, test))
    choice = choose_l2(scaled, labels, num_classes=num_classes, grid=GRID)
    guesses = {
        "probe": jnp.argmax(choice.probe.scores(test_scaled), axis=1),
        "knn": knn_predict(train, labels, test, num_classes=num_classes),
    }
    found = {name: float(100 * np.mean(guess == test_labels)) for name, guess in guesses.items()}
    error = np.sqrt(found["probe"] * (100 - found["probe"]) / len(test_labels))
    return found | {"error": float(error), "l2": choice.l2}


def measure(encoder: Encoder, data_path: str | None) -> dict[str, float]:
    """`score` for every row of the encoder's data."""
    data = load(encoder.config.data.name, path=data_path)
    assert data.test is not None
    assert data.num_classes is not None
    train, test = (
        np.asarray(plain_features(encoder.encode_inputs, encoder.transform, part.images))
        for part in (data.train, data.test)
    )
    return score(train, test, data.train.labels, data.test.labels, data.num_classes)
