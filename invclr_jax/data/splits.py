"""Parts of a training set: label fractions (Fig. 3) and the validation split that chooses L2.

Both return indices, because features are cut as often as images. Test sets are never cut.
"""

import numpy as np
from jaxtyping import Float, Int

from invclr_jax.data.randomness import generator

Targets = Int[np.ndarray, " n"] | Float[np.ndarray, "n targets"]


def fraction_indices(
    labels: Targets, fraction: float, *, seed: int = 0
) -> Int[np.ndarray, " some"]:
    """Rows that keep their labels, the same fraction of every class.

    With one seed a smaller fraction is part of a larger one, so that points of one curve differ by
    the rows added and by nothing else.

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
    """Cuts a training set in two: rows to fit on, and rows to choose regularisation by.

    Args:
      labels: as for `fraction_indices`; cut classes each give the same fraction.
      fraction: of the rows to hold out, above 0 and below 1.
      seed: of the draw.

    Returns:
      Sorted indices of the rows to fit on and of the rows held out; neither is empty.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"validation fraction {fraction} is not above 0 and below 1")
    if len(labels) < 2:
        raise ValueError(f"{len(labels)} row cannot be cut in two: give at least 2 rows")
    held_out = _draw(labels, fraction, generator(seed, "validation"))
    fit = np.setdiff1d(np.arange(len(labels)), held_out)
    if len(fit) == 0:  # every class has one row: give the last back
        fit, held_out = held_out[-1:], held_out[:-1]
    return fit, held_out


def _draw(labels: np.ndarray, fraction: float, rng: np.random.Generator) -> np.ndarray:
    """The first `fraction` of each class in a random order, at least one of each, sorted."""
    order = rng.permutation(len(labels))
    classes = labels[order] if labels.ndim == 1 else np.zeros(len(labels), int)
    by_class = order[np.argsort(classes, kind="stable")]
    counts = np.unique(classes, return_counts=True)[1]
    groups = np.split(by_class, np.cumsum(counts)[:-1])
    return np.sort(np.concatenate([g[: max(1, round(fraction * len(g)))] for g in groups]))
