"""Distributions of alpha with exact mean and variance."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.transforms.independent import (
    Independent,
    Vector,
    as_rows,
    check_order,
    check_positive,
    moments,
)


@dataclasses.dataclass(frozen=True, eq=False)
class Box(Independent):
    """The uniform distribution on an axis-aligned box.

    Attributes:
      low: smallest value of each component, `[a]`.
      high: largest value of each component, `[a]`; equal to `low` where a component is fixed.
      names: of the components, or None.
    """

    low: Vector
    high: Vector
    names: Sequence[str] | None = None

    def _check(self) -> None:
        check_order("Box", self.low, self.high)

    @property
    def mean(self) -> np.ndarray:
        """E[alpha], `[a]`."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> np.ndarray:
        """Var[alpha_j] = width²/12, `[a]`."""
        return (self.high - self.low) ** 2 / 12

    def sample(self, key: PRNGKeyArray, n: int) -> Float[Array, "n a"]:
        """Draws `n` independent alphas."""
        low, high = as_rows(self.low, self.high)
        return jax.random.uniform(key, (n, self.size), minval=low, maxval=high)


@dataclasses.dataclass(frozen=True, eq=False)
class Normal(Independent):
    """Independent normal components.

    Attributes:
      mean: E[alpha], `[a]`.
      std: standard deviation of each component, positive, `[a]`.
      names: of the components, or None.
    """

    mean: Vector
    std: Vector
    names: Sequence[str] | None = None

    def _check(self) -> None:
        check_positive("Normal", "std", self.std)

    @property
    def variance(self) -> np.ndarray:
        """Var[alpha_j], `[a]`."""
        return self.std**2

    def sample(self, key: PRNGKeyArray, n: int) -> Float[Array, "n a"]:
        """Draws `n` independent alphas."""
        mean, std = as_rows(self.mean, self.std)
        return mean + std * jax.random.normal(key, (n, self.size))


@dataclasses.dataclass(frozen=True, eq=False)
class TruncatedNormal(Independent):
    """Independent normal components, each conditioned to lie between two ends.

    Attributes:
      location: mean of the normal before it is cut, `[a]`.
      scale: its standard deviation, positive, `[a]`.
      low: lower ends, `[a]`.
      high: upper ends, `[a]`.
      names: of the components, or None.
    """

    location: Vector
    scale: Vector
    low: Vector
    high: Vector
    names: Sequence[str] | None = None

    def _check(self) -> None:
        check_positive("TruncatedNormal", "scale", self.scale)
        check_order("TruncatedNormal", self.low, self.high)

    @property
    def mean(self) -> np.ndarray:
        """E[alpha], `[a]`."""
        return self.location + self.scale * self._standard_moments()[0]

    @property
    def variance(self) -> np.ndarray:
        """Var[alpha_j], `[a]`."""
        return self.scale**2 * self._standard_moments()[1]

    def sample(self, key: PRNGKeyArray, n: int) -> Float[Array, "n a"]:
        """Draws `n` independent alphas through the inverse of the distribution function.

        Ranges are mirrored into the left tail, where that function keeps its digits in float32.
        """
        low, high = self._standard_ends()
        sign = np.where(low + high > 0, -1.0, 1.0)
        left, right = np.minimum(sign * low, sign * high), np.maximum(sign * low, sign * high)
        location, slope, left, right = as_rows(self.location, self.scale * sign, left, right)
        below, above = ndtr(left), ndtr(right)
        uniform = jax.random.uniform(key, (n, self.size))
        drawn = jnp.clip(ndtri(below + (above - below) * uniform), left, right)
        return jnp.clip(location + slope * drawn, *as_rows(self.low, self.high))

    def _standard_ends(self) -> tuple[np.ndarray, np.ndarray]:
        return (self.low - self.location) / self.scale, (self.high - self.location) / self.scale

    def _standard_moments(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._standard_ends()
        peak = np.clip(0, low, high)
        reach = np.sqrt(peak**2 + 80)  # beyond it the density is below e^-40 of its peak
        low, high = np.maximum(low, -reach), np.minimum(high, reach)
        return moments(low, high, weight=lambda x: np.exp((peak[:, None] ** 2 - x**2) / 2))


@dataclasses.dataclass(frozen=True, eq=False)
class LogUniform(Independent):
    """Independent components whose logarithms are uniform.

    Attributes:
      low: smallest value of each component, positive, `[a]`.
      high: largest value of each component, `[a]`.
      names: of the components, or None.
    """

    low: Vector
    high: Vector
    names: Sequence[str] | None = None

    def _check(self) -> None:
        check_positive("LogUniform", "low", self.low)
        check_order("LogUniform", self.low, self.high)

    @property
    def mean(self) -> np.ndarray:
        """E[alpha], `[a]`."""
        return moments(*np.log([self.low, self.high]), value=np.exp)[0]

    @property
    def variance(self) -> np.ndarray:
        """Var[alpha_j], `[a]`."""
        return moments(*np.log([self.low, self.high]), value=np.exp)[1]

    def sample(self, key: PRNGKeyArray, n: int) -> Float[Array, "n a"]:
        """Draws `n` independent alphas."""
        low, high = as_rows(*np.log([self.low, self.high]))
        drawn = jnp.exp(jax.random.uniform(key, (n, self.size), minval=low, maxval=high))
        return jnp.clip(drawn, *as_rows(self.low, self.high))


@dataclasses.dataclass(frozen=True, eq=False)
class LogOfUniform(Independent):
    """Logarithms of independent uniform variables: that of a random crop's area is one.

    Attributes:
      low: smallest value of each uniform variable, positive, `[a]`.
      high: largest value of each uniform variable, `[a]`.
      names: of the components, or None.
    """

    low: Vector
    high: Vector
    names: Sequence[str] | None = None

    def _check(self) -> None:
        check_positive("LogOfUniform", "low", self.low)
        check_order("LogOfUniform", self.low, self.high)

    @property
    def mean(self) -> np.ndarray:
        """E[alpha], `[a]`."""
        return self._moments()[0]

    @property
    def variance(self) -> np.ndarray:
        """Var[alpha_j], `[a]`."""
        return self._moments()[1]

    def sample(self, key: PRNGKeyArray, n: int) -> Float[Array, "n a"]:
        """Draws `n` independent alphas."""
        low, high = as_rows(self.low, self.high)
        return jnp.log(jax.random.uniform(key, (n, self.size), minval=low, maxval=high))

    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """The density of alpha is proportional to e^alpha."""
        low, high = np.log([self.low, self.high])
        return moments(low, high, weight=lambda x: np.exp(x - high[:, None]))
