"""Parts of a data set: label fractions (Fig. 3), the validation split that chooses L2, samples.

All of them are seeded and keep the proportions of the classes.
"""

import numpy as np
from jaxtyping import Float, Int

from invclr_jax.data.dataset import Split
from invclr_jax.data.randomness import generator

Targets = Int[np.ndarray, " n"] | Float[np.ndarray, "n targets"]


def sample(split: Split, size: int | None, *, seed: int = 0) -> Split:
    """A random sample of some rows, in the order of the split.

    The classes keep their proportions, each has at least one row if `size` allows, and a
    smaller sample is part of a larger one with the same seed.

    Args:
      split: what to sample from.
      size: rows, at least 1; None, or as many as there are, for the split itself.
      seed: of the draw.
    """
    if size is not None and size < 1:
        raise ValueError(f"a sample of {size} rows is empty: use 1 or more")
    if size is None or size >= len(split):
        return split
    classes = _classes(split.labels, len(split))
    return split.take(_sample_rows(classes, size, generator(seed, "sample")))


def _sample_rows(classes: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """In random order, the k-th of a class's n rows gets the rank k/n: take the lowest ranks."""
    order = rng.permutation(len(classes))
    by_class = order[np.argsort(classes[order], kind="stable")]
    counts = np.unique(classes, return_counts=True)[1]
    place = np.concatenate([np.arange(count) / count for count in counts])
    # Among equals, such as the first rows of all classes, the random order decides.
    position = np.empty(len(order), int)
    position[order] = np.arange(len(order))
    return np.sort(by_class[np.lexsort((position[by_class], place))[:size]])


def _classes(labels: np.ndarray | None, num_rows: int) -> np.ndarray:
    """The classes, or a single one for all rows if there are none."""
    return labels if labels is not None and labels.ndim == 1 else np.zeros(num_rows, int)


def fraction_indices(
    labels: Targets, fraction: float, *, seed: int = 0
) -> Int[np.ndarray, " some"]:
    """Rows that keep their labels, the same fraction of every class.

    With one seed a smaller fraction is part of a larger one, so that points on one curve differ
    only by the rows added.

    Args:
      labels: classes `[n]`, or regression targets `[n, t]`, which are drawn regardless of value.
      fraction: above 0 and up to 1; every class keeps at least one row.
      seed: of the draw.

    Returns:
      Sorted indices.
    """
    if not 0 < fraction <= 1:
        raise ValueError(f"label fraction {fraction} is not above 0 and at most 1")
    return _draw(labels, fraction, generator(seed, "label fraction"))


def validation_indices(
    labels: Targets, fraction: float = 0.1, *, seed: int = 0
) -> tuple[Int[np.ndarray, " fit"], Int[np.ndarray, " validation"]]:
    """Splits a training set in two: rows to fit on, and rows to choose regularisation with.

    Args:
      labels: as for `fraction_indices`; each class gives the same fraction.
      fraction: of the rows to hold out, above 0 and below 1.
      seed: of the draw.

    Returns:
      Sorted indices of the rows to fit on and of the rows held out; neither is empty.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"validation fraction {fraction} is not above 0 and below 1")
    if len(labels) < 2:
        raise ValueError(f"{len(labels)} row cannot be split in two: give at least 2 rows")
    held_out = _draw(labels, fraction, generator(seed, "validation"))
    fit = np.setdiff1d(np.arange(len(labels)), held_out)
    if len(fit) == 0:  # every class has one row: put the last one back
        fit, held_out = held_out[-1:], held_out[:-1]
    return fit, held_out


def _draw(labels: np.ndarray, fraction: float, rng: np.random.Generator) -> np.ndarray:
    """The first `fraction` of each class in a random order, at least one of each, sorted."""
    order = rng.permutation(len(labels))
    classes = _classes(labels, len(labels))[order]
    by_class = order[np.argsort(classes, kind="stable")]
    counts = np.unique(classes, return_counts=True)[1]
    groups = np.split(by_class, np.cumsum(counts)[:-1])
    return np.sort(np.concatenate([g[: max(1, round(fraction * len(g)))] for g in groups]))
