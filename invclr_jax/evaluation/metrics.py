"""Scores of predictions."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from invclr_jax.evaluation.checks import Values


def accuracy(predictions: Integer[Values, " n"], labels: Integer[Values, " n"]) -> float:
    """Percentage of correct predictions."""
    return float(100 * np.mean(np.asarray(predictions) == np.asarray(labels)))


def cross_entropies(
    scores: Float[Values, "n c"], labels: Integer[Values, " n"]
) -> Float[Array, " n"]:
    """-log softmax(scores) at the label of each row; log-probabilities are scores too."""
    scores, labels = jnp.asarray(scores), jnp.asarray(labels)
    # A comparison, not a gather, so that its derivative is not a scatter.
    right = labels[:, None] == jnp.arange(scores.shape[1])[None]
    return jax.nn.logsumexp(scores, axis=1) - jnp.sum(scores, axis=1, where=right)


def cross_entropy(scores: Float[Values, "n c"], labels: Integer[Values, " n"]) -> Float[Array, ""]:
    """Mean of `cross_entropies`."""
    return jnp.mean(cross_entropies(scores, labels))


def squared_error(
    predictions: Float[Values, "n t"], targets: Float[Values, "n t"]
) -> Float[Array, " t"]:
    """Mean squared error of each output."""
    return jnp.mean((jnp.asarray(predictions) - jnp.asarray(targets)) ** 2, axis=0)
