"""Predictions from features: a linear probe if there are labels, else the nearest picture."""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from invclr_jax.evaluation.audit.subject import Subject
from invclr_jax.evaluation.probes import fit_classifier

Decide = Callable[[Float[np.ndarray, "n d"]], Int[np.ndarray, " n"]]

L2 = 1e-4


@dataclasses.dataclass(frozen=True, eq=False)
class Probe:
    """A linear probe on clean features.

    Attributes:
      decide: features -> classes.
      test: rows that it was not fitted to.
    """

    decide: Decide
    test: Int[np.ndarray, " t"]


def probe(subject: Subject) -> Probe:
    """Softmax regression on standardised clean features of two thirds of the pictures."""
    labels = np.asarray(subject.labels)
    test = np.arange(len(labels)) % 3 == 0
    mean, std = subject.clean[~test].mean(0), subject.clean[~test].std(0)
    std = np.where(std > 0, std, 1)
    fitted = fit_classifier(
        (subject.clean[~test] - mean) / std,
        labels[~test],
        num_classes=int(labels.max()) + 1,
        l2=L2,
    )
    return Probe(lambda z: np.asarray(fitted.predict((z - mean) / std)), np.flatnonzero(test))


def nearest(subject: Subject) -> Decide:
    """Which of the pictures that are never varied, or of all, is nearest by cosine."""
    rest = subject.clean[subject.settings.varied_images :]
    gallery = rest if len(rest) >= 2 else subject.clean

    def unit(z):
        norm = np.linalg.norm(z, axis=1, keepdims=True)
        return z / np.where(norm > 0, norm, 1)

    return lambda z: np.argmax(unit(z) @ unit(gallery).T, axis=1)
