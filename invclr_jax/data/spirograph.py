"""Spirograph data: factors of interest from a seed; a picture is rendered when a step needs it."""

import numpy as np
from jaxtyping import Float32

from invclr_jax.data.dataset import Dataset, Split
from invclr_jax.data.randomness import generator

RANGES = {
    "m": (2.0, 5.0),
    "b": (0.1, 1.1),
    "h": (0.5, 2.5),
    "sigma": (0.25, 1.0),
    "f_r": (0.4, 1.0),
    "f_g": (0.4, 1.0),
    "f_b": (0.4, 1.0),
    "b_r": (0.0, 0.6),
    "b_g": (0.0, 0.6),
    "b_b": (0.0, 0.6),
}
"""The uniform distribution of every factor (paper, appendix on the Spirograph dataset)."""

INTEREST = ("m", "b", "sigma", "f_r")
"""The factors of interest, in the order of x."""


def draw_factors(seed: int, part: str, num: int) -> Float32[np.ndarray, "n 4"]:
    """Draws the factors of `num` pictures; a longer draw starts with the shorter one.

    Args:
      seed: of the dataset.
      part: `train` or `test`, which are independent.
      num: rows, at least 1.

    Returns:
      Rows of (m, b, sigma, f_r).
    """
    if num < 1:
        raise ValueError(f"num_{part} is {num}: at least one Spirograph picture is needed")
    low, high = np.array([RANGES[name] for name in INTEREST]).T
    uniform = generator(seed, f"spirograph {part}").random((num, len(INTEREST)))
    return (low + (high - low) * uniform).astype(np.float32)


def load_spirograph(*, seed: int = 0, num_train: int = 100_000, num_test: int = 20_000) -> Dataset:
    """The dataset of the paper, or another size of it.

    Args:
      seed: another seed gives other pictures from the same distribution.
      num_train: training rows.
      num_test: test rows; they do not depend on `num_train`.

    Returns:
      A dataset whose images and labels are both the factors: what is rendered is what a regression
      has to recover.
    """
    train, test = draw_factors(seed, "train", num_train), draw_factors(seed, "test", num_test)
    return Dataset(
        "spirograph",
        Split(train, train),
        Split(test, test),
        label_names=INTEREST,
        transform="spirograph",
    )
