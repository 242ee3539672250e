"""Randomness of the data: one independent stream per purpose."""

import zlib

import numpy as np


def generator(seed: int, purpose: str, *counters: int) -> np.random.Generator:
    """A generator that depends only on its arguments.

    Args:
      seed: the user's seed, at least 0.
      purpose: what is drawn, so that equal seeds for different purposes are unrelated.
      *counters: what else the draw depends on, the epoch for example.

    Returns:
      A fresh NumPy generator.
    """
    if seed < 0:
        raise ValueError(f"seed {seed} is negative: use 0 or more")
    stream = (zlib.crc32(purpose.encode()), *counters)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=stream))
