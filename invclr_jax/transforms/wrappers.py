"""Transforms around a transform: frozen, or only sometimes applied."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from invclr_jax.transforms.compose import split
from invclr_jax.transforms.distributions import Box
from invclr_jax.transforms.independent import Distribution
from invclr_jax.transforms.protocol import Transform, takes_images

NOTHING = Box((), (), ())
"""The distribution of an alpha without components."""


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A transform whose alpha has become part of beta, see `frozen`."""

    transform: Transform
    alpha = NOTHING

    @property
    def takes_images(self) -> bool:
        """Whether x are pictures."""
        return takes_images(self.transform)

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n 0"], tuple]:
        """Draws no alpha, `[n, 0]`, and (alpha, beta) of the transform as beta."""
        return jnp.zeros((n, 0)), self.transform.sample(key, n)

    def apply(
        self, x: Any, alpha: Float[Array | np.ndarray, "n 0"], beta: tuple
    ) -> Float[Array, "n h w c"]:
        """Applies the transform with the alpha in beta."""
        split(alpha, [0], ())
        return self.transform.apply(x, *beta)

    def untransformed(self, x: Any) -> Float[Array, "n h w c"]:
        """The transform's plain version."""
        return self.transform.untransformed(x)


def frozen(transform: Transform) -> Frozen:
    """The same transform with its alpha moved into beta, so that the penalty leaves it alone."""
    return Frozen(transform)


@dataclasses.dataclass(frozen=True)
class Sometimes:
    """Applies a transform by the toss of a coin; else pictures stay plain.

    A picture whose coin says no keeps its alpha, and its derivative in alpha is 0.

    Attributes:
      transform: what to apply; it keeps the shape of pictures.
      probability: how often.
    """

    transform: Transform
    probability: float

    def __post_init__(self):
        if not 0 <= self.probability <= 1:
            raise ValueError(f"probability is {self.probability}: give a number from 0 to 1")

    @property
    def alpha(self) -> Distribution:
        """The transform's distribution of alpha."""
        return self.transform.alpha

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n a"], tuple]:
        """Draws alpha `[n, a]`, and coins `[n]` with the transform's beta."""
        key, coin_key = jax.random.split(key)
        alpha, beta = self.transform.sample(key, n)
        return alpha, (jax.random.bernoulli(coin_key, float(self.probability), (n,)), beta)

    def apply(
        self, x: Any, alpha: Float[Array | np.ndarray, "n a"], beta: tuple
    ) -> Float[Array, "n h w c"]:
        """The transformed pictures where the coin says so, else the plain ones."""
        coins, rest = beta
        return where(
            coins,
            self.transform.apply(x, jnp.asarray(alpha), rest),
            self.transform.untransformed(x),
        )

    def untransformed(self, x: Any) -> Float[Array, "n h w c"]:
        """The transform's plain version."""
        return self.transform.untransformed(x)


def where(
    coins: Bool[Array | np.ndarray, " n"],
    yes: Float[Array, "n h w c"],
    no: Float[Array, "n h w _"],
) -> Float[Array, "n h w c"]:
    """Pictures of `yes` where the coin is true, else of `no`."""
    return jnp.where(jnp.asarray(coins, bool)[:, None, None, None], yes, no)
