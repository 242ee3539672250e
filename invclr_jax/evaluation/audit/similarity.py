"""Cosines and retrieval between plain and transformed pictures, and between different pictures."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

MOST_COMPONENTS = 256
"""Principal components that are whitened, as in ssl-invariances."""


class Whitening(NamedTuple):
    """An affine map after which the clean features have covariance I, or a projection of that.

    Attributes:
      mean: `[d]`.
      matrix: `[d, k]`.
    """

    mean: Float[np.ndarray, " d"]
    matrix: Float[np.ndarray, "d k"]

    def __call__(self, z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
        """Whitened features."""
        return (z - self.mean) @ self.matrix


def whitening(clean: Float[np.ndarray, "n d"]) -> Whitening:
    """Whitens the leading principal components of clean features.

    At most 256 of them, a tenth as many as there are rows, and none below a millionth of the
    largest variance: directions that hold nothing would be all noise.

    Args:
      clean: features of plain pictures.
    """
    mean = np.asarray(clean, np.float64).mean(0)
    values, vectors = principal(clean, min(MOST_COMPONENTS, max(1, len(clean) // 10)))
    return Whitening(mean, vectors / np.sqrt(values))


def principal(
    clean: Float[np.ndarray, "n d"], most: int
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "d k"]]:
    """Variances and directions of the leading principal components, the largest first.

    Args:
      clean: features of plain pictures.
      most: how many at most; those below a millionth of the largest variance are left out.
    """
    z = np.asarray(clean, np.float64)
    values, vectors = np.linalg.eigh(np.cov(z.T).reshape(z.shape[1], z.shape[1]))
    values, vectors = values[::-1], vectors[:, ::-1]
    if values[0] <= 0:
        raise ValueError(
            "all features are equal: an encoder that ignores pictures cannot be audited"
        )
    kept = int(min(most, (values > 1e-6 * values[0]).sum()))
    return values[:kept], vectors[:, :kept]


def cosines(a: Float[np.ndarray, "n d"], b: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """Cosine of each row of a with the same row of b; 0 where one of them is 0."""
    return (_unit(a) * _unit(b)).sum(1)


def reciprocal_ranks(
    queries: Float[np.ndarray, "n d"], gallery: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, " n"]:
    """1/rank of row i of the gallery among all rows by cosine to query i; ties count against."""
    scores = _unit(queries) @ _unit(gallery).T
    own = np.diagonal(scores)[:, None]
    return 1 / (scores >= own).sum(1)


def strangers(n: int, seed: int) -> np.ndarray:
    """A permutation of n ≥ 2 rows without a fixed point: for each, a different picture."""
    order = np.random.default_rng(seed).permutation(n)
    partner = np.empty(n, int)
    partner[order] = np.roll(order, 1)
    return partner


def _unit(z: np.ndarray) -> np.ndarray:
    z = np.asarray(z, np.float64)
    norm = np.linalg.norm(z, axis=1, keepdims=True)
    return z / np.where(norm > 0, norm, 1)
