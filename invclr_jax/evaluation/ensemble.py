"""Averaging predictions instead of features (appendix, "Comparison with ensembling")."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from invclr_jax.evaluation.checks import Values, at_least_one
from invclr_jax.evaluation.metrics import accuracy, cross_entropy
from invclr_jax.evaluation.probes import Classifier, fit_classifier

Samples = Float[Values, "n m d"]


class Score(NamedTuple):
    """Test accuracy in percent and mean cross entropy."""

    accuracy: float
    loss: float


class Comparison(NamedTuple):
    """The same M transformations used in both ways."""

    averaging: Score
    ensembling: Score


def fit_augmented(
    features: Samples,
    labels: Integer[Values, " n"],
    *,
    num_classes: int,
    l2: float,
    init: Classifier | None = None,
) -> Classifier:
    """Fits a classifier to every transformed copy of every sample.

    Args:
      features: z of n samples under M transformations each.
      labels: classes of the samples.
      num_classes: how many there are.
      l2: weight of |W|², as for feature averaging.
      init: a probe to start from.
    """
    features = _checked(features)
    copies = features.reshape(-1, features.shape[-1])
    if labels is not None:
        labels = np.repeat(np.asarray(labels), features.shape[1], axis=0)
    return fit_classifier(copies, labels, num_classes=num_classes, l2=l2, init=init)


def ensemble_log_probabilities(classifier: Classifier, features: Samples) -> Float[Array, "n c"]:
    """log of 1/M Σ_m p(y | z_m).

    Args:
      classifier: of single features.
      features: z of n samples under M transformations each.
    """
    features = _checked(features)
    n, m, d = features.shape
    each = classifier.log_probabilities(features.reshape(n * m, d)).reshape(n, m, -1)
    return jax.nn.logsumexp(each, axis=1) - jnp.log(m).astype(each.dtype)


def compare(
    train_features: Samples,
    train_labels: Integer[Values, " n"],
    test_features: Float[Values, "t m d"],
    test_labels: Integer[Values, " t"],
    *,
    num_classes: int,
    l2: float,
    nums: Sequence[int],
) -> dict[int, Comparison]:
    """Feature averaging beside ensembling, over the first M transformations.

    Args:
      train_features: z of the training samples under at least max(nums) transformations.
      train_labels: their classes.
      test_features: z of the test samples, likewise.
      test_labels: theirs.
      num_classes: how many classes there are.
      l2: weight of |W|² of both classifiers.
      nums: the Ms.

    Returns:
      M -> scores of both on the test samples.
    """
    train, test = _checked(train_features), _checked(test_features)
    fewest = min(train.shape[1], test.shape[1])
    for num in nums:
        at_least_one(num, "M")
        if num > fewest:
            raise ValueError(f"M = {num} needs as many transformations, the features have {fewest}")
    averaging: Classifier | None = None
    ensembling: Classifier | None = None
    results = {}
    for num in nums:
        averaging = fit_classifier(
            train[:, :num].mean(1), train_labels, num_classes=num_classes, l2=l2, init=averaging
        )
        ensembling = fit_augmented(
            train[:, :num], train_labels, num_classes=num_classes, l2=l2, init=ensembling
        )
        results[num] = Comparison(
            _score(averaging.log_probabilities(test[:, :num].mean(1)), test_labels),
            _score(ensemble_log_probabilities(ensembling, test[:, :num]), test_labels),
        )
    return results


def _score(log_probabilities: Float[Array, "n c"], labels: Integer[Values, " n"]) -> Score:
    predictions = jnp.argmax(log_probabilities, axis=1)
    return Score(accuracy(predictions, labels), float(cross_entropy(log_probabilities, labels)))


def _checked(features: Samples) -> Float[Array, "n m d"]:
    features = jnp.asarray(features)
    if features.ndim != 3 or 0 in features.shape:
        raise ValueError(
            f"features must be [samples, transformations, d] with one of each, got {features.shape}"
        )
    return features
