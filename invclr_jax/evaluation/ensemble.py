"""Averaging predictions instead of features (appendix, "Comparison with ensembling").

Test features are never kept: each transformation of a picture adds to its probabilities and is
then discarded. The classifier is fitted to transformed training features, which all have to exist
at once: at most `fold` per picture. From M = fold on, the classifier stays the same.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Integer, PRNGKeyArray

from invclr_jax.evaluation import passes
from invclr_jax.evaluation.checks import Values
from invclr_jax.evaluation.features import Encode, as_partial, transforms_at_once
from invclr_jax.evaluation.metrics import accuracy, cross_entropy
from invclr_jax.evaluation.probes import Classifier, fit_classifier
from invclr_jax.evaluation.storage import MEMORY, empty
from invclr_jax.evaluation.sweep import sweep
from invclr_jax.transforms.base import Transform

Samples = Float[Values, "n m d"]
Pairs = Mapping[int, tuple[np.ndarray, np.ndarray]]
"""M -> averaged features of training and test rows."""


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
    memory: int = MEMORY,
) -> Classifier:
    """Fits a classifier to every transformed copy of every sample.

    Args:
      features: z of n samples under M transformations each.
      labels: classes of the samples.
      num_classes: how many there are.
      l2: weight of |W|², as for feature averaging.
      init: a probe to start from.
      memory: bytes beyond which a copy of the features is kept in a file.
    """
    if features.ndim != 3 or 0 in features.shape:
        raise ValueError(
            f"features must be [samples, transformations, d], none of them 0, got {features.shape}"
        )
    if labels is not None:
        labels = np.repeat(np.asarray(labels), features.shape[1], axis=0)
    options: dict[str, Any] = {"num_classes": num_classes, "l2": l2, "init": init}
    return fit_classifier(_copies(features, memory), labels, **options)


def _copies(features: Samples, memory: int) -> Float[np.ndarray, "copies d"]:
    """One row per transformation of each sample."""
    features = np.asarray(features)
    if not features.flags.c_contiguous:
        whole = empty(features.shape, features.dtype, memory)
        whole[...] = features
        features = whole
    return features.reshape(-1, features.shape[-1])


def log_probabilities(
    encode: Encode,
    transform: Transform,
    x: Any,
    key: PRNGKeyArray,
    classifiers: Mapping[int, Classifier],
    *,
    batch_size: int = 256,
    **options: Any,
) -> dict[int, Float[np.ndarray, "n c"]]:
    """log of 1/M Σ_m p(y | z_m), for every M with a classifier of its own.

    Args:
      encode: network inputs -> z.
      transform: what the ensemble is over.
      x: inputs, `[n, ...]`.
      key: of the transformations, as for `features.average_features`.
      classifiers: M -> classifier of single features.
      batch_size: inputs that each device encodes at a time.
      **options: `memory` and `progress`, see `features`.
    """
    nums, probes = list(classifiers), list(classifiers.values())
    logs = sweep(
        passes.predictions,
        {
            "encode": as_partial(encode),
            "key": key,
            "stops": jnp.array(nums),
            "weights": jnp.stack([probe.weights for probe in probes]),
            "bias": jnp.stack([probe.bias for probe in probes]),
        },
        x,
        batch_size,
        indexed=True,
        sample=transform.sample,
        apply=transform.apply,
        chunk=transforms_at_once(len(x), batch_size, max(nums)),
        **options,
    )
    return {num: logs[:, position] for position, num in enumerate(nums)}


def fit_each(
    samples: Samples,
    labels: Integer[Values, " n"],
    *,
    nums: list[int],
    num_classes: int,
    l2: float,
    memory: int = MEMORY,
) -> dict[int, Classifier]:
    """The classifier of an ensemble for every M, each from the one before.

    Args:
      samples: z of the training samples under the available transformations.
      labels: their classes.
      nums: the Ms, ascending; beyond the available transformations nothing changes.
      num_classes: how many classes there are.
      l2: weight of |W|².
      memory: bytes beyond which a copy of the features is kept in a file.
    """
    options: dict[str, Any] = {"num_classes": num_classes, "l2": l2, "memory": memory}
    fitted: dict[int, Classifier] = {}
    latest: Classifier | None = None
    latest_num = 0
    for num in nums:
        if latest is None or latest_num < samples.shape[1]:
            latest = fit_augmented(samples[:, :num], labels, init=latest, **options)
        fitted[num], latest_num = latest, num
    return fitted


def compare(
    averages: Pairs,
    ensembled: Mapping[int, Float[Values, "t c"]],
    train_labels: Integer[Values, " n"],
    test_labels: Integer[Values, " t"],
    *,
    num_classes: int,
    l2: float,
) -> dict[int, Comparison]:
    """Feature averaging compared with ensembling.

    Args:
      averages: M -> averaged features.
      ensembled: M -> log-probabilities of the test rows, see `log_probabilities`.
      train_labels: classes of the training rows.
      test_labels: of the test rows.
      num_classes: how many classes there are.
      l2: weight of |W|² of the classifier of averaged features.

    Returns:
      M -> scores of both on the test rows.
    """
    options: dict[str, Any] = {"num_classes": num_classes, "l2": l2}
    averaging: Classifier | None = None
    results = {}
    for num, logs in ensembled.items():
        train, test = averages[num]
        averaging = fit_classifier(train, train_labels, init=averaging, **options)
        own = averaging.log_probabilities(test)
        results[num] = Comparison(_score(own, test_labels), _score(logs, test_labels))
    return results


def _score(logs: Float[Values, "n c"], labels: Integer[Values, " n"]) -> Score:
    return Score(accuracy(np.argmax(logs, axis=1), labels), float(cross_entropy(logs, labels)))
