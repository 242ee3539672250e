"""The one abstraction: a differentiable transformation `t(x, alpha, beta)` and the law of alpha."""

import dataclasses
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray


class NoPlainVersion(ValueError):
    """Raised by `untransformed` where every picture is made by some alpha."""


@dataclasses.dataclass(frozen=True, eq=False)
class Box:
    """The uniform distribution of alpha on an axis-aligned box.

    A closed box rather than a general law: its first two moments are all that the closed-form
    penalty estimators need, E[(g·(alpha'-alpha))²] = Σ g_j² variance_j + (g·(mean-alpha))².

    Attributes:
      low: smallest value of each component, `[a]`.
      high: largest value of each component, `[a]`; equal to `low` where a component is fixed.
    """

    low: np.ndarray
    high: np.ndarray

    def __post_init__(self):
        low, high = (np.asarray(bound, np.float64) for bound in (self.low, self.high))
        if low.ndim != 1 or low.shape != high.shape:
            raise ValueError(
                f"Box needs two vectors of one length, got low of shape {low.shape} and high of "
                f"shape {high.shape}: give one number for each component of alpha in both"
            )
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ValueError(f"Box bounds must be finite, got low {low} and high {high}")
        if (low > high).any():
            worst = int(np.argmax(low - high))
            raise ValueError(
                f"Box component {worst} has low {low[worst]:g} > high {high[worst]:g}: swap them"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def size(self) -> int:
        """Number of components of alpha."""
        return len(self.low)

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
        return jax.random.uniform(
            key,
            (n, self.size),
            minval=jnp.asarray(self.low)[None],
            maxval=jnp.asarray(self.high)[None],
        )


@runtime_checkable
class Transform(Protocol):
    """What changes a picture. Randomness lives in `sample`; `apply` is a pure function.

    Any object with these four attributes works with every method, penalty, evaluation and
    experiment. beta holds what the penalty leaves alone (crops, flips, coin tosses).
    """

    @property
    def alpha(self) -> Box:
        """The distribution of alpha."""
        ...

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n a"], Any]:
        """Draws alpha `[n, a]` and beta, a pytree with leading axis n (or None)."""
        ...

    def apply(self, x: Any, alpha: Float[Array, "n a"], beta: Any) -> Float[Array, "n h w 3"]:
        """The transformed pictures as the encoder sees them; differentiable in alpha."""
        ...

    def untransformed(self, x: Any) -> Float[Array, "n h w 3"]:
        """The plain pictures as the encoder sees them, or raises `NoPlainVersion`."""
        ...
