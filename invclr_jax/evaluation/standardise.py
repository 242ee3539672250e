"""Features of mean 0 and variance 1, so that one weight decay suits all of them."""

import jax.numpy as jnp
from jaxtyping import Array, Float

LEAST_KURTOSIS = 10
"""A feature with less than this is not called rare, however few rows there are."""


def standardised(
    train: Float[Array, "n d"], test: Float[Array, "t d"], held_out: int
) -> tuple[Float[Array, "n d"], Float[Array, "t d"]]:
    """Both scaled so that training rows have mean 0 and variance 1; rare features become 0.

    A unit that is active in one training row out of thousands has a tiny deviation and a weight
    that this row alone decides; a test row may be thousands of deviations away. A feature that
    varies equally in k of n rows has a kurtosis of n/k, a normal one 3. If the
    kurtosis exceeds the number of held-out rows, the feature is expected to vary in less than one
    of them, and none can warn of such a weight.

    Args:
      train: training features.
      test: test features.
      held_out: how many of the training rows choose l2.
    """
    mean, std = train.mean(0, keepdims=True), train.std(0, keepdims=True)
    std = jnp.where(std > 0, std, 1)
    train, test = (train - mean) / std, (test - mean) / std
    kurtosis = jnp.mean(train**4, axis=0, keepdims=True)
    rare = kurtosis > max(held_out, LEAST_KURTOSIS)
    return jnp.where(rare, 0, train), jnp.where(rare, 0, test)
