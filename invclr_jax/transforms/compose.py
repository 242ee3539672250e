"""Transforms one after another."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.transforms.independent import Distribution
from invclr_jax.transforms.protocol import NoPlainVersion, Transform, alpha_names, takes_images


@dataclasses.dataclass(frozen=True)
class Product:
    """Independent distributions side by side.

    Attributes:
      parts: the distributions, in the order of alpha's components.
      names: of all components.
    """

    parts: tuple[Distribution, ...]
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of components of alpha."""
        return sum(part.size for part in self.parts)

    @property
    def mean(self) -> np.ndarray:
        """E[alpha], `[a]`."""
        return np.concatenate([np.zeros(0), *(part.mean for part in self.parts)])

    @property
    def variance(self) -> np.ndarray:
        """Var[alpha_j], `[a]`."""
        return np.concatenate([np.zeros(0), *(part.variance for part in self.parts)])

    def sample(self, key: PRNGKeyArray, n: int) -> Float[Array, "n a"]:
        """Draws `n` independent alphas."""
        keys = jax.random.split(key, len(self.parts))
        return join([part.sample(k, n) for part, k in zip(self.parts, keys, strict=True)], n)


@dataclasses.dataclass(frozen=True)
class Compose:
    """Transforms one after another: alphas are concatenated, betas become a tuple.

    Attributes:
      transforms: the parts; each is given the pictures of the one before it, floats in [0, 1].
    """

    transforms: Sequence[Transform]

    def __post_init__(self):
        parts = tuple(self.transforms)
        strange = [part for part in parts if not isinstance(part, Transform)]
        if strange or not parts:
            raise ValueError(
                f"Compose was given {strange[0]!r}: every part needs alpha, sample, apply and "
                "untransformed"
                if strange
                else "Compose was given no transforms: give at least one"
            )
        object.__setattr__(self, "transforms", parts)

    @property
    def alpha(self) -> Product:
        """The distribution of all alphas; a name that occurs twice is numbered, `angle_2`."""
        names = unique(name for part in self.transforms for name in alpha_names(part))
        return Product(tuple(part.alpha for part in self.transforms), names)

    @property
    def takes_images(self) -> bool:
        """Whether x are pictures: the first part takes them."""
        return takes_images(self.transforms[0])

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n a"], tuple]:
        """Draws alpha `[n, a]` and the beta of each part, with a key for each part."""
        keys = jax.random.split(key, len(self.transforms))
        pairs = zip(self.transforms, keys, strict=True)
        alphas, betas = zip(*(part.sample(k, n) for part, k in pairs), strict=True)
        return join(alphas, n), betas

    def apply(
        self, x: Any, alpha: Float[Array | np.ndarray, "n a"], beta: Sequence[Any]
    ) -> Float[Array, "n h w c"]:
        """Applies the parts in order.

        Args:
          x: what the first part takes, `[n, ...]`.
          alpha: of all parts, `[n, a]`.
          beta: one for each part.

        Returns:
          Pictures of the last part.
        """
        sizes = [part.alpha.size for part in self.transforms]
        alphas = split(alpha, sizes, alpha_names(self))
        for part, own, rest in zip(self.transforms, alphas, beta, strict=True):
            x = part.apply(x, own, rest)
        return x

    def untransformed(self, x: Any) -> Float[Array, "n h w c"]:
        """The plain version of every part in order; raises if one of them has none."""
        for position, part in enumerate(self.transforms):
            try:
                x = part.untransformed(x)
            except NoPlainVersion as reason:
                name = type(part).__name__
                raise NoPlainVersion(
                    f"part {position} ({name}) of the composition: {reason}"
                ) from None
        return x


def join(alphas: Sequence[Float[Array, "n _"]], n: int) -> Float[Array, "n a"]:
    """Alphas side by side; `[n, 0]` if there are none."""
    return jnp.concatenate(alphas, axis=1) if alphas else jnp.zeros((n, 0))


def split(
    alpha: Array | np.ndarray, sizes: Sequence[int], names: Sequence[str]
) -> list[Float[Array, "n _"]]:
    """Cuts alpha's columns into groups, or raises ValueError if it has not as many."""
    if np.ndim(alpha) != 2 or np.shape(alpha)[1] != sum(sizes):
        raise ValueError(
            f"alpha has shape {np.shape(alpha)}, not [n, {sum(sizes)}]: give one row for each "
            f"picture with columns ({', '.join(names)})"
        )
    return jnp.split(jnp.asarray(alpha), np.cumsum(sizes)[:-1].tolist(), axis=1)


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Names in which the second `angle` is `angle_2`."""
    counts: Counter[str] = Counter()
    result = []
    for name in names:
        counts[name] += 1
        result.append(name if counts[name] == 1 else f"{name}_{counts[name]}")
    return tuple(result)
