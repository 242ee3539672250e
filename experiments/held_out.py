"""kNN on held-out training rows of CIFAR: for choosing settings without looking at test rows.

`experiments.checkpoints` measures it.
"""

import numpy as np

from invclr_jax.checkpoint import Encoder
from invclr_jax.data import load
from invclr_jax.evaluation.context import labels_of
from invclr_jax.evaluation.features import plain_features
from invclr_jax.evaluation.knn import knn_predict

HELD_OUT = 10_000
"""The last training rows; all others vote."""
COLUMNS = {"knn": "kNN on held-out training rows, %"}


def measure(encoder: Encoder, data_path: str | None) -> dict[str, float]:
    """The accuracy of plain pictures in percent."""
    rows = load(encoder.config.data.name, path=data_path).train
    z = np.asarray(plain_features(encoder.encode_inputs, encoder.transform, rows.images))
    labels = labels_of(rows)
    classes = int(labels.max()) + 1
    voters, held_out = slice(None, -HELD_OUT), slice(-HELD_OUT, None)
    guess = knn_predict(z[voters], labels[voters], z[held_out], num_classes=classes)
    return {"knn": float(100 * np.mean(guess == labels[held_out]))}
