"""Percentile intervals by resampling pictures (Efron, 1979)."""

import functools

import numpy as np
from jaxtyping import Float

Interval = tuple[float, float]


class Bootstrap:
    """Resamples of n rows, the same for every measure of those rows.

    Args:
      resamples: how many.
      confidence: share of them inside the interval.
      seed: of the resamples.
    """

    def __init__(self, resamples: int, confidence: float, seed: int):
        self.resamples, self.seed = resamples, seed
        self.ends = 50 * (1 - confidence), 50 * (1 + confidence)

    @functools.lru_cache(maxsize=8)  # noqa: B019
    def weights(self, n: int) -> Float[np.ndarray, "b n"]:
        """How often each row occurs in each resample, divided by n."""
        rng = np.random.default_rng([self.seed, n])
        return rng.multinomial(n, np.full(n, 1 / n), self.resamples) / n

    def mean(self, rows: Float[np.ndarray, " n"]) -> Interval:
        """The interval of a mean over rows."""
        return self._interval(self.weights(len(rows)) @ np.asarray(rows, np.float64))

    def share(
        self, rows: Float[np.ndarray, " n"], of: Float[np.ndarray, " n"], *, missing: bool = False
    ) -> Interval:
        """The interval of sum(rows)/sum(of), or of one minus that if `missing`."""
        weights = self.weights(len(rows))
        shares = (weights @ rows) / (weights @ of)
        return self._interval(1 - shares if missing else shares)

    def ratio(
        self, within: Float[np.ndarray, " n"], second: Float[np.ndarray, " n"], means: np.ndarray
    ) -> tuple[Interval, Interval]:
        """The intervals of V_total and V_cond/V_total.

        Args:
          within: variance of each picture's features.
          second: mean of |h|² over each picture's features.
          means: mean of each picture's features, `[n, d]`.
        """
        weights = self.weights(len(within))
        total = weights @ second - ((weights @ means) ** 2).sum(1)
        return self._interval(total), self._interval((weights @ within) / total)

    def _interval(self, values: np.ndarray) -> Interval:
        low, high = np.percentile(values, self.ends)
        return float(low), float(high)
