"""Weighted k-nearest-neighbour classification by cosine similarity: a probe without training.

Test rows are divided over all devices of all processes; each device holds all rows that vote.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer

from invclr_jax.evaluation import checks
from invclr_jax.evaluation.checks import Values
from invclr_jax.evaluation.sweep import sweep
from invclr_jax.objectives.features import unit_rows

ROWS = 128
"""Test rows at a time: with 50,000 training rows their similarities take 25 MB."""
BATCH = 8 * ROWS
"""Test rows that a device is sent at a time."""


def knn_predict(
    train_features: Float[Values, "n d"],
    train_labels: Integer[Values, " n"],
    test_features: Float[Values, "t d"],
    *,
    num_classes: int,
    k: int = 200,
    temperature: float = 0.1,
) -> Int[np.ndarray, " t"]:
    """The class with the largest sum of exp(similarity/temperature) among the k nearest.

    Args:
      train_features: z of the rows that vote.
      train_labels: their classes.
      test_features: z of the rows to classify.
      num_classes: how many classes there are.
      k: neighbours that vote; all training rows if there are fewer.
      temperature: with a small one the nearest decide alone.
    """
    train = checks.finite_rows(train_features, "training features")
    test = checks.finite_rows(test_features, "test features")
    labels = checks.class_labels(train_labels, len(train), num_classes)
    if train.shape[1] != test.shape[1]:
        raise ValueError(f"training features have {train.shape[1]} columns, test {test.shape[1]}")
    checks.at_least_one(k, "k")
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}: use a number above 0, such as 0.1")
    voters = {"train": unit_rows(train), "labels": labels, "temperature": temperature}
    k = min(k, len(train))
    return sweep(_vote, voters, np.asarray(test), BATCH, num_classes=num_classes, k=k)


def _vote(train, labels, temperature, x, *, num_classes: int, k: int) -> Int[Array, " n"]:
    def predict(row):
        similarity = jnp.matmul(train, unit_rows(row), precision="highest")
        nearest, index = jax.lax.top_k(similarity, k)
        # Relative to the nearest: the same winner, and no overflow at low temperature.
        weight = jnp.exp((nearest - nearest[0]) / temperature)
        return jnp.argmax(jax.ops.segment_sum(weight, labels[index], num_classes))

    return jax.lax.map(predict, x, batch_size=min(ROWS, len(x)))
