"""Where averaged features find what single views do not show: directions that alpha corrupts.

z is split into its canonical directions: the stable ones, whose correlation between two views is
above 1/2, and the others. Factors are read from the stable directions and from all, in single views
and in averages of 20. If averages of all directions reveal more than averages of the stable ones,
the rest is hidden in single views and recovered by averaging. `experiments.checkpoints` measures
it.
"""

import jax
import numpy as np
import scipy.linalg

from invclr_jax.checkpoint import Encoder
from invclr_jax.evaluation.features import conditional_features
from invclr_jax.transforms.spirograph import SpirographTransform

TRAIN, TEST, VIEWS, STABLE = 2000, 1000, 20, 0.5
COLUMNS = {
    "stable": "stable directions",
    "single/stable": "error, M=1, stable",
    "single/all": "error, M=1, all",
    "average/stable": f"error, M={VIEWS}, stable",
    "average/all": f"error, M={VIEWS}, all",
}


def canonical_basis(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Canonical correlations of views `[n, p, d]`, descending, and the directions in columns."""
    centred = z - z.mean((0, 1))
    first, second = (part.reshape(-1, z.shape[2]) for part in (centred[:, :-1], centred[:, 1:]))
    total, cross = first.T @ first + second.T @ second, first.T @ second + second.T @ first
    least = 1e-9 * np.trace(total) / len(total)  # for units that never vary
    values, vectors = scipy.linalg.eigh(cross, total + least * np.eye(len(total)))
    return values[::-1], vectors[:, ::-1]


def error(train: np.ndarray, test: np.ndarray, targets: np.ndarray, test_targets) -> float:
    """Summed test error of least squares with a bias."""
    with_bias = [np.concatenate([rows, np.ones((len(rows), 1))], 1) for rows in (train, test)]
    weights = np.linalg.lstsq(with_bias[0], targets, rcond=1e-8)[0]
    return float(((with_bias[1] @ weights - test_targets) ** 2).mean(0).sum())


def split(z: np.ndarray, targets: np.ndarray, train: int) -> dict[str, float]:
    """All columns.

    Args:
      z: representations of n inputs under p transformations, `[n, p, d]`.
      targets: what to read from them, `[n, t]`.
      train: how many of the inputs probes and directions are fitted to.
    """
    correlations, basis = canonical_basis(z[:train])
    count = int((correlations > STABLE).sum())
    found = {"stable": float(count)}
    for which, size in (("stable", count), ("all", z.shape[2])):
        turned = z @ basis[:, :size]
        for name, rows in (("single", turned[:, 0]), ("average", turned.mean(1))):
            parts = rows[:train], rows[train:], targets[:train], targets[train:]
            found[f"{name}/{which}"] = error(*parts)
    return found


def measure(encoder: Encoder) -> dict[str, float]:
    """`split` for fresh inputs."""
    keys = jax.random.split(jax.random.key(encoder.config.seed))
    if not isinstance(encoder.transform, SpirographTransform):
        raise ValueError(f"a run on {encoder.config.data.name} has no factors: use Spirograph's")
    x = encoder.transform.x.sample(keys[0], TRAIN + TEST)
    z = conditional_features(encoder.encode_inputs, encoder.transform, x, keys[1], VIEWS)
    return split(np.asarray(z, np.float64), np.asarray(x, np.float64), TRAIN)
