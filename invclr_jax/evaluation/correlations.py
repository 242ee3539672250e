"""Canonical correlations between two views: a measure of invariance that low rank cannot fool."""

import numpy as np
from jaxtyping import Float

from invclr_jax.evaluation import checks
from invclr_jax.evaluation.checks import Values


def canonical_correlations(
    z: Float[Values, "n d"], z_prime: Float[Values, "n d"]
) -> Float[np.ndarray, " d"]:
    """The canonical correlations of an exchangeable pair: eigenvalues of T^-1/2 C T^-1/2.

    With m the mean of all 2n rows, a = z - m and b = z' - m, T = (a'a + b'b)/2n and
    C = (a'b + b'a)/2n. They do not change under invertible affine maps of z. Along an invariant
    direction the correlation is 1, along one that is all nuisance 0, and a direction without
    variance counts as 0. Computed in float64.

    Args:
      z: representations of n inputs, `[n, d]`.
      z_prime: of the same inputs under other, independent transformations, `[n, d]`.

    Returns:
      The correlations, descending, `[d]`.
    """
    precision = float(np.finfo(_checked(z, z_prime).dtype).eps)
    both = np.concatenate([np.asarray(z, np.float64), np.asarray(z_prime, np.float64)])
    white = _whitened(both - both.mean(0), precision)
    cross = white[: len(z)].T @ white[len(z) :]
    found = np.linalg.eigvalsh(cross + cross.T)
    return np.sort(np.pad(found, (0, both.shape[1] - len(found))))[::-1]


def _whitened(rows: np.ndarray, precision: float) -> np.ndarray:
    """Rows in coordinates where their second moments add up to the identity.

    Directions that vary by no more than rounding, in the precision the rows came in, are left out.
    """
    scale = np.sqrt((rows**2).sum(0))
    rows = rows / np.where(scale > 0, scale, 1)
    values, vectors = np.linalg.eigh(rows.T @ rows)
    dim = len(values)
    least = max((dim * precision) ** 2, dim * np.finfo(np.float64).eps)
    kept = values > least * max(values[-1], 1)
    return rows @ (vectors[:, kept] / np.sqrt(values[kept]))


def _checked(z: Values, z_prime: Values) -> np.ndarray:
    """z, after checking that z and z' are finite pairs."""
    rows = checks.finite_rows(z, "z")
    others = checks.finite_rows(z_prime, "z_prime", rows=len(rows))
    if rows.shape[1] != others.shape[1]:
        raise ValueError(
            f"z and z_prime have {rows.shape[1]} and {others.shape[1]} components: "
            "give representations from one encoder"
        )
    if len(rows) < 2:
        raise ValueError("canonical correlations need at least 2 pairs, got 1")
    return np.asarray(rows)
