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
BRIEF = ("probe", "knn", "averaged/probe", "averaged/knn", "coloured", "alpha", "correlation")
"""Columns of `measure_briefly` that tables show."""


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


@dataclasses.dataclass(frozen=True, eq=False)
class Measured:
    """An encoder, its data and the probe of plain pictures.

    Attributes:
      encoder: of pictures.
      train: all training pictures.
      test: all test pictures.
      labels: classes of the training pictures.
      test_labels: of the test pictures.
      z: representations of the plain training pictures, `[n, d]`.
      test_z: of the test pictures.
      probe: fitted to z.
    """

    encoder: Encoder
    train: np.ndarray
    test: np.ndarray
    labels: np.ndarray
    test_labels: np.ndarray
    z: np.ndarray
    test_z: np.ndarray
    probe: Probe

    @classmethod
    def of(cls, encoder: Encoder, data_path: str | None) -> "Measured":
        """Reads the encoder's data and fits the probe."""
        data = load(encoder.config.data.name, path=data_path)
        assert data.test is not None
        train, test = np.asarray(data.train.images), np.asarray(data.test.images)
        labels = labels_of(data.train)
        z, test_z = (_plain(encoder, images) for images in (train, test))
        probe = fit(z, labels, int(labels.max()) + 1)
        return cls(encoder, train, test, labels, labels_of(data.test), z, test_z, probe)

    def accuracy(self, images) -> float:
        """Of the probe on other versions of the first test pictures."""
        return self.accuracy_of(_plain(self.encoder, images))

    def accuracy_of(self, z: np.ndarray) -> float:
        """Of the probe on representations of the first test pictures."""
        return _percent(self.probe.decide(z), self.test_labels[: len(z)])


def measure(encoder: Encoder, data_path: str | None) -> dict[str, Any]:
    """All columns for every row of the encoder's data, and `hits`, see `mcnemar.pack`."""
    of = Measured.of(encoder, data_path)
    return {name: value for part in PARTS for name, value in part(of).items()}


def measure_briefly(encoder: Encoder, data_path: str | None) -> dict[str, Any]:
    """Without few labels and without pictures that are rotated or corrupted."""
    of = Measured.of(encoder, data_path)
    return plain(of) | averaged(of) | colours(of)


def plain(of: Measured) -> dict[str, Any]:
    """Probe and kNN of plain pictures, and which of them the probe gets right."""
    found: dict[str, Any] = score(of.probe, of.z, of.test_z, of.labels, of.test_labels)
    hits = mcnemar.pack(of.probe.decide(of.test_z) == of.test_labels)
    return found | {"l2": of.probe.l2, "hits": hits}


def few_labels(of: Measured) -> dict[str, float]:
    """Probes that see few labels."""
    found = {}
    for name, count in FEW.items():
        few = fit(of.z[:count], of.labels[:count], int(of.labels.max()) + 1)
        found[name] = _percent(few.decide(of.test_z), of.test_labels)
    return found


def averaged(of: Measured) -> dict[str, float]:
    """Probe and kNN of averaged features."""
    keys, labels = jax.random.split(jax.random.key(0), 4)[:2], of.labels[:AVERAGED]
    pictures = of.train[:AVERAGED], of.test
    encode, transform = of.encoder.encode_inputs, of.encoder.transform
    train, test = (
        np.asarray(average_features(encode, transform, images, key, SAMPLES))
        for images, key in zip(pictures, keys, strict=True)
    )
    probe = fit(train, labels, int(of.labels.max()) + 1, (of.probe.l2,))
    found = score(probe, train, test, labels, of.test_labels)
    return {f"averaged/{name}": found[name] for name in ("probe", "knn")}


def elsewhere(of: Measured) -> dict[str, float]:
    """The probe of plain pictures on rotated and on corrupted ones."""
    key = jax.random.split(jax.random.key(0), 4)[2]
    tried = [
        of.accuracy(corrupt(of.test[:CORRUPTED], name, severity, key))
        for name in NAMES
        for severity in SEVERITIES
    ]
    rotated = [of.accuracy(rotate(of.test, angle)) for angle in DEGREES]
    return {"rotated": float(np.mean(rotated)), "corrupted": float(np.mean(tried))}


def colours(of: Measured) -> dict[str, float]:
    """The probe in other colours, and what z reveals about them."""
    key = jax.random.split(jax.random.key(0), 4)[3]
    (z, alpha), (test_z, test_alpha) = recoloured(
        of.encoder, of.train[: len(of.test)], of.test, key
    )
    return {
        "coloured": of.accuracy_of(test_z[:, 0]),
        "alpha": alpha_explained(z[:, 0], alpha[:, 0], test_z[:, 0], test_alpha[:, 0]),
        "correlation": float(np.mean(canonical_correlations(test_z[:, 0], test_z[:, 1]))),
    }


PARTS = (plain, few_labels, averaged, elsewhere, colours)


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


def _plain(encoder: Encoder, images) -> np.ndarray:
    return np.asarray(plain_features(encoder.encode_inputs, encoder.transform, images))


def _percent(guess, labels) -> float:
    return float(100 * np.mean(np.asarray(guess) == labels))
