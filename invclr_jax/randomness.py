"""Independent streams of random keys, by name."""

import zlib

import jax
from jaxtyping import PRNGKeyArray


def stream(key: PRNGKeyArray, purpose: str) -> PRNGKeyArray:
    """The key for one purpose.

    `split(key)[i]` and `fold_in(key, i)` are the same key, so streams that are told apart by small
    numbers meet. Names do not.
    """
    return jax.random.fold_in(key, zlib.crc32(purpose.encode()))
