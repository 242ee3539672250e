"""Ridge regression in closed form, in double precision on the host.

With features in float32 and l2 = 1e-8 the normal equations lose every digit in float32. In float64
they keep them: squaring the condition number costs twice the seven digits that the features have,
and float64 has sixteen. Only the f×f solve and the sums leading to it are done this way, in slices,
on the host, because accelerators have no (or slow) float64.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

ROWS = 8192
"""Rows converted to float64 at a time."""


class Moments(NamedTuple):
    """Means and centred second moments of features and targets, divided by n·t."""

    feature_mean: Float[np.ndarray, " f"]
    target_mean: Float[np.ndarray, " t"]
    features: Float[np.ndarray, "f f"]
    cross: Float[np.ndarray, "f t"]


def moments(
    features: Float[Array | np.ndarray, "n f"], targets: Float[Array | np.ndarray, "n t"]
) -> Moments:
    """All that ridge regression needs to know about the data, for any l2."""
    features, targets = np.asarray(features), np.asarray(targets)
    feature_mean = features.mean(0, dtype=np.float64)
    target_mean = targets.mean(0, dtype=np.float64)
    second = np.zeros((len(feature_mean),) * 2)
    cross = np.zeros((len(feature_mean), len(target_mean)))
    for start in range(0, len(features), ROWS):
        rows = slice(start, start + ROWS)
        centred = features[rows] - feature_mean  # float64, as the mean is
        second += centred.T @ centred
        cross += centred.T @ (targets[rows] - target_mean)
    return Moments(feature_mean, target_mean, second / targets.size, cross / targets.size)


def solve(known: Moments, l2: float) -> tuple[Float[np.ndarray, "f t"], Float[np.ndarray, " t"]]:
    """Minimum of mean over samples and outputs of squared error + l2·|W|², bias free.

    Args:
      known: moments of the data.
      l2: 0 gives least squares, of least norm where features are collinear.

    Returns:
      W and b.
    """
    matrix = known.features + l2 * np.eye(len(known.features))
    # A unit diagonal first: features of very unequal scale are not ill-conditioned in themselves.
    scale = 1 / np.sqrt(np.where(np.diagonal(matrix) > 0, np.diagonal(matrix), 1))
    scaled = matrix * scale[:, None] * scale
    if _invertible(scaled):
        weights = scale[:, None] * np.linalg.solve(scaled, scale[:, None] * known.cross)
    else:
        weights = np.linalg.pinv(matrix, hermitian=True, rcond=_cutoff(matrix)) @ known.cross
    return weights, known.target_mean - known.feature_mean @ weights


def _invertible(matrix: np.ndarray) -> bool:
    try:
        pivots = np.diagonal(np.linalg.cholesky(matrix)) ** 2
    except np.linalg.LinAlgError:
        return False
    return bool(pivots.min() > _cutoff(matrix))


def _cutoff(matrix: np.ndarray) -> float:
    return 10 * len(matrix) * np.finfo(np.float64).eps
