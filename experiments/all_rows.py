"""CIFAR again, fairly: every row, standardised features, l2 chosen on held-out rows, and kNN.

The records' probe has a fixed l2, which favours features of large variance, and 4000 training
rows. Here the same probe is also fitted to few labels, tested on averaged features and, fitted to
plain pictures, on rotated, recoloured and corrupted ones. Alpha is that of colours at the paper's
strength, whatever the encoder was trained with. `experiments.checkpoints` measures it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from experiments import mcnemar
from invclr_jax.checkpoint import Encoder
from invclr_jax.data import load
from invclr_jax.evaluation.alpha import predict_alpha
from invclr_jax.evaluation.context import labels_of
from invclr_jax.evaluation.correlations import canonical_correlations
from invclr_jax.evaluation.features import average_features, plain_features, transformed_features
from invclr_jax.evaluation.knn import knn_predict
from invclr_jax.evaluation.probes import Classifier
from invclr_jax.evaluation.selection import choose_l2
from invclr_jax.transforms.corruptions import NAMES, SEVERITIES, corrupt
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.pictures import as_floats
from invclr_jax.transforms.warping import affine

GRID = tuple(10.0**power for power in range(-6, 0))
SAMPLES = 8
"""M of averaged features."""
AVERAGED = 10_000
"""Training rows that are averaged; the probe on means keeps the l2 of the plain one."""
FEW = {"few/1": 500, "few/10": 5000}
"""Training rows of the probes with few labels: the first ones."""
DEGREES = (-30, -20, -10, 10, 20, 30)
CORRUPTED = 1000
"""Test rows that every corruption is tried on."""
STILL: dict[str, Any] = {
    "crop": False,
    "flip": False,
    "grey_probability": 0.0,
    "jitter_probability": 1.0,
}
"""Options with which only colours vary."""
COLUMNS = {
    "probe": "probe, %",
    "knn": "kNN, %",
    "error": "binomial error, %",
    "few/1": "1 % of labels, %",
    "few/10": "10 % of labels, %",
    "averaged/probe": f"averaged, M={SAMPLES}, %",
    "averaged/knn": f"kNN, M={SAMPLES}, %",
    "rotated": "rotated by 10 to 30°, %",
    "coloured": "other colours, %",
    "corrupted": "corrupted, %",
    "alpha": "alpha explained",
    "correlation": "canonical correlation of two colours",
    "l2": "l2",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Probe:
    """A linear classifier on standardised features.

    Attributes:
      mean: of the training rows, `[1, d]`.
      std: theirs, 1 for constant features.
      classifier: on the standardised features.
      l2: its weight decay, chosen on held-out training rows.
    """

    mean: np.ndarray
    std: np.ndarray
    classifier: Classifier
    l2: float

    def decide(self, features: np.ndarray) -> np.ndarray:
        """The classes of rows `[n, d]`."""
        scores = self.classifier.scores((features - self.mean) / self.std)
        return np.asarray(jnp.argmax(scores, axis=1))


def fit(
    train: np.ndarray, labels: np.ndarray, num_classes: int, grid: Sequence[float] = GRID
) -> Probe:
    """The probe fitted to training rows `[n, d]`, with an l2 from the grid."""
    mean, std = train.mean(0, keepdims=True), train.std(0, keepdims=True)
    std = np.where(std > 0, std, 1)
    choice = choose_l2((train - mean) / std, labels, num_classes=num_classes, grid=grid)
    return Probe(mean, std, choice.probe, choice.l2)


def score(
    probe: Probe,
    train: np.ndarray,
    test: np.ndarray,
    labels: np.ndarray,
    test_labels: np.ndarray,
) -> dict[str, float]:
    """Accuracy of the probe with its error, and that of kNN, in percent.

    Args:
      probe: fitted to the training rows.
      train: features of the training rows, `[n, d]`.
      test: of the test rows, `[t, d]`.
      labels: classes of the training rows.
      test_labels: of the test rows.
    """
    num_classes = int(labels.max()) + 1
    near = knn_predict(train, labels, test, num_classes=num_classes)
    right = _percent(probe.decide(test), test_labels)
    error = np.sqrt(right * (100 - right) / len(test_labels))
    return {"probe": right, "knn": _percent(near, test_labels), "error": float(error)}


def measure(encoder: Encoder, data_path: str | None) -> dict[str, Any]:
    """All columns for every row of the encoder's data, and `hits`, see `mcnemar.pack`."""
    data = load(encoder.config.data.name, path=data_path)
    assert data.test is not None
    labels, test_labels = labels_of(data.train), labels_of(data.test)
    num_classes = int(labels.max()) + 1
    train_key, test_key, noise_key, alpha_key = jax.random.split(jax.random.key(0), 4)

    def plain(images):
        return np.asarray(plain_features(encoder.encode_inputs, encoder.transform, images))

    def averaged(images, key):
        options = encoder.encode_inputs, encoder.transform, images, key, SAMPLES
        return np.asarray(average_features(*options))

    train, test = plain(data.train.images), plain(data.test.images)
    probe = fit(train, labels, num_classes)
    found: dict[str, Any] = score(probe, train, test, labels, test_labels) | {"l2": probe.l2}
    found["hits"] = mcnemar.pack(probe.decide(test) == test_labels)
    for name, count in FEW.items():
        few = fit(train[:count], labels[:count], num_classes)
        found[name] = _percent(few.decide(test), test_labels)
    rows = labels[:AVERAGED]
    means = averaged(data.train.images[:AVERAGED], train_key), averaged(data.test.images, test_key)
    of_means = score(fit(means[0], rows, num_classes, (probe.l2,)), *means, rows, test_labels)
    found |= {f"averaged/{name}": of_means[name] for name in ("probe", "knn")}

    def accuracy(images):
        return _percent(probe.decide(plain(images)), test_labels[: len(images)])

    pictures = np.asarray(data.test.images)
    found["rotated"] = float(np.mean([accuracy(rotate(pictures, angle)) for angle in DEGREES]))
    tried = [
        accuracy(corrupt(pictures[:CORRUPTED], name, severity, noise_key))
        for name in NAMES
        for severity in SEVERITIES
    ]
    found["corrupted"] = float(np.mean(tried))
    (z, alpha), (test_z, test_alpha) = recoloured(
        encoder, data.train.images[: len(pictures)], pictures, alpha_key
    )
    found["coloured"] = _percent(probe.decide(test_z[:, 0]), test_labels)
    found["alpha"] = alpha_explained(z[:, 0], alpha[:, 0], test_z[:, 0], test_alpha[:, 0])
    pair = canonical_correlations(test_z[:, 0], test_z[:, 1])
    return found | {"correlation": float(np.mean(pair))}


def recoloured(encoder: Encoder, train: np.ndarray, test: np.ndarray, key):
    """z `[n, M, d]` and alpha `[n, M, a]` of whole pictures in other colours.

    Args:
      encoder: of pictures.
      train: pictures, each with one alpha (M=1).
      test: pictures, each with two.
      key: of the colours.

    Returns:
      Those of the training pictures and those of the test pictures.
    """
    like = cast(ImageTransform, encoder.transform)
    transform = ImageTransform(like.whole_shape, like.mean, like.std, **STILL)
    train_key, test_key = jax.random.split(key)
    return (
        transformed_features(encoder.encode_inputs, transform, train, train_key, 1),
        transformed_features(encoder.encode_inputs, transform, test, test_key, 2),
    )


def alpha_explained(z, alpha, test_z, test_alpha) -> float:
    """The share of alpha's variance that ridge regression reads from z, at least 0.

    Args:
      z: representations to fit to, `[n, d]`.
      alpha: theirs, `[n, a]`.
      test_z: representations to test on.
      test_alpha: theirs.
    """
    read = predict_alpha(z, alpha, test_z, test_alpha)
    return max(0.0, float(1 - np.mean(read.mse / read.reference)))


def rotate(images: np.ndarray, degrees: float) -> np.ndarray:
    """Pictures rotated about their centres, edge pixels repeated, floats in [0, 1]."""
    alpha = np.zeros((1, 6), np.float32)
    alpha[:, 0] = degrees / 360
    parts = [
        affine(as_floats(part), np.repeat(alpha, len(part), axis=0), antialias=False)
        for part in np.array_split(images, -(-len(images) // 1000))
    ]
    return np.concatenate([np.asarray(part) for part in parts])


def _percent(guess, labels) -> float:
    return float(100 * np.mean(np.asarray(guess) == labels))
