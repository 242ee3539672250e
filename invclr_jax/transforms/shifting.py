"""Test-time shifts of a transform's distribution, for the robustness protocol."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.transforms.compose import Compose
from invclr_jax.transforms.independent import Distribution, as_rows
from invclr_jax.transforms.protocol import Transform, alpha_names, takes_images
from invclr_jax.transforms.wrappers import Frozen, frozen

Shifts = tuple[Transform, Mapping[str, Transform]]

DEVIATIONS = (-1.0, -0.5, 0.5, 1.0)
SPREADS = (1.5, 2.0)


def shifts(transform: Transform) -> Shifts:
    """The regime without shifts and the shifted transforms by name, for any transform.

    They differ in their distributions only: what one of them draws, `transform.apply` takes.

    Args:
      transform: its method `shifts()` is asked if it has one; parts of a composition are shifted
        one at a time; else every component is, by `component_shifts`.
    """
    if hasattr(transform, "shifts"):
        return transform.shifts()
    if isinstance(transform, Compose):
        return _composed_shifts(transform)
    if isinstance(transform, Frozen):
        regime, shifted = shifts(transform.transform)
        return frozen(regime), {name: frozen(t) for name, t in shifted.items()}
    return component_shifts(transform)


def component_shifts(transform: Transform) -> Shifts:
    """Shifts every component of alpha by standard deviations, and spreads it about its mean.

    A name tells the shift in units of alpha, `angle_shift=+0.048`, or how many times as wide the
    distribution is, `angle_spread=1.5`. Components that do not vary are left out.
    """
    deviations = np.sqrt(transform.alpha.variance)
    shifted: dict[str, Transform] = {}
    for column, name in enumerate(alpha_names(transform)):
        if deviations[column] == 0:
            continue
        for amount in deviations[column] * np.array(DEVIATIONS):
            shifted[f"{name}_shift={amount:+.3g}"] = moved(transform, column, shift=amount)
        for factor in SPREADS:
            shifted[f"{name}_spread={factor:g}"] = moved(transform, column, spread=factor)
    return transform, shifted


def moved(transform: Transform, column: int, *, shift: float = 0.0, spread: float = 1.0) -> "Moved":
    """The transform with one component of alpha drawn from a shifted or spread distribution.

    Args:
      transform: any.
      column: of alpha.
      shift: is added to the component.
      spread: multiplies its distance from the mean.
    """
    offsets, factors = np.zeros(transform.alpha.size), np.ones(transform.alpha.size)
    offsets[column], factors[column] = shift, spread
    return Moved(transform, tuple(offsets.tolist()), tuple(factors.tolist()))


@dataclasses.dataclass(frozen=True)
class MovedDistribution:
    """The distribution of mean + factor·(alpha - mean) + offset.

    Attributes:
      base: the distribution of alpha.
      offsets: one for each component.
      factors: one for each component.
    """

    base: Distribution
    offsets: Sequence[float]
    factors: Sequence[float]

    @property
    def size(self) -> int:
        """Number of components of alpha."""
        return self.base.size

    @property
    def names(self) -> Sequence[str] | None:
        """Of the components, or None."""
        return getattr(self.base, "names", None)

    @property
    def mean(self) -> np.ndarray:
        """E[alpha], `[a]`."""
        return self.base.mean + np.array(self.offsets)

    @property
    def variance(self) -> np.ndarray:
        """Var[alpha_j], `[a]`."""
        return self.base.variance * np.array(self.factors) ** 2

    def sample(self, key: PRNGKeyArray, n: int) -> Float[Array, "n a"]:
        """Draws `n` independent alphas: those of the base, moved."""
        return self.move(self.base.sample(key, n))

    def move(self, alpha: Float[Array, "n a"]) -> Float[Array, "n a"]:
        """Moves draws of the base."""
        mean, offsets, factors = as_rows(
            self.base.mean, np.array(self.offsets), np.array(self.factors)
        )
        still = (offsets == 0) & (factors == 1)
        return jnp.where(still, alpha, mean + factors * (alpha - mean) + offsets)


@dataclasses.dataclass(frozen=True)
class Moved:
    """A transform whose alphas are moved after they were drawn, see `moved`."""

    transform: Transform
    offsets: Sequence[float]
    factors: Sequence[float]

    @property
    def alpha(self) -> MovedDistribution:
        """The distribution of the moved alpha."""
        return MovedDistribution(self.transform.alpha, self.offsets, self.factors)

    @property
    def takes_images(self) -> bool:
        """Whether x are pictures."""
        return takes_images(self.transform)

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n a"], Any]:
        """Draws as the transform does, then moves alpha."""
        alpha, beta = self.transform.sample(key, n)
        return self.alpha.move(alpha), beta

    def apply(self, x: Any, alpha: Float[Array, "n a"], beta: Any) -> Float[Array, "n h w c"]:
        """As the transform does."""
        return self.transform.apply(x, alpha, beta)

    def untransformed(self, x: Any) -> Float[Array, "n h w c"]:
        """The transform's plain version."""
        return self.transform.untransformed(x)


def _composed_shifts(composition: Compose) -> Shifts:
    parts = [shifts(part) for part in composition.transforms]
    regimes = [regime for regime, _ in parts]
    shifted: dict[str, Transform] = {}
    for position, (_, others) in enumerate(parts):
        for name, other in others.items():
            changed = Compose([*regimes[:position], other, *regimes[position + 1 :]])
            shifted[f"{position}_{name}" if name in shifted else name] = changed
    return Compose(regimes), shifted
