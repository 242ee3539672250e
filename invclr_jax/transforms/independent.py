"""What a distribution of alpha is, and what those with independent components share.

The closed-form penalty estimators need no more than two moments,
E[(g·(alpha'-alpha))²] = Σ g_j² variance_j + (g·(mean-alpha))². Distributions are values: equal
arguments make equal, hashable objects, so a transform that holds one is a static argument of jit.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

Vector = Any
"""Numbers in any sequence when given; a read-only float64 array `[a]` once constructed."""


@runtime_checkable
class Distribution(Protocol):
    """What the penalty has to know about alpha; a distribution of your own needs only this.

    `names`, a tuple with one name for each component, is optional.
    """

    @property
    def size(self) -> int:
        """Number of components of alpha."""
        ...

    @property
    def mean(self) -> np.ndarray:
        """E[alpha], `[a]`."""
        ...

    @property
    def variance(self) -> np.ndarray:
        """Var[alpha_j], `[a]`; components are independent."""
        ...

    def sample(self, key: PRNGKeyArray, n: int) -> Float[Array, "n a"]:
        """Draws `n` independent alphas."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class Independent:
    """Checks the vectors of a distribution and makes it a value."""

    def __post_init__(self):
        kind = type(self).__name__
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        names = fields.pop("names")
        vectors = {name: np.array(vector, np.float64) for name, vector in fields.items()}
        _check_vectors(kind, vectors)
        for name, vector in vectors.items():
            vector.setflags(write=False)
            object.__setattr__(self, name, vector)
        if names is not None:
            object.__setattr__(self, "names", check_names(kind, names, self.size))
        self._check()

    def _check(self) -> None:
        """Raises where the vectors make no distribution."""

    @property
    def size(self) -> int:
        """Number of components of alpha."""
        return len(getattr(self, dataclasses.fields(self)[0].name))

    def _value(self) -> tuple:
        values = [getattr(self, field.name) for field in dataclasses.fields(self)]
        return (type(self), *(v.tobytes() if isinstance(v, np.ndarray) else v for v in values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Independent) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())


def as_rows(*vectors: np.ndarray) -> list[Float[Array, "1 a"]]:
    """Vectors as JAX arrays that broadcast over samples."""
    return [jnp.asarray(vector)[None] for vector in vectors]


def moments(
    low: np.ndarray,
    high: np.ndarray,
    *,
    value: Callable[[np.ndarray], np.ndarray] = lambda x: x,
    weight: Callable[[np.ndarray], np.ndarray] = np.ones_like,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of `value(x)`, where x in [low, high] has a density like `weight`.

    By Gauss-Legendre quadrature. For analytic functions 128 nodes leave rounding errors only, also
    on narrow ranges, where closed forms cancel.

    Args:
      low: lower ends, `[a]`.
      high: upper ends, `[a]`.
      value: of x `[a, nodes]`.
      weight: density of x up to a factor for each row, `[a, nodes]`.

    Returns:
      Means and variances, `[a]` each.
    """
    nodes, weights = np.polynomial.legendre.leggauss(128)
    x = low[:, None] + (high - low)[:, None] * (nodes + 1) / 2
    density = weights * weight(x)
    density /= density.sum(axis=1, keepdims=True)
    mean = (density * value(x)).sum(axis=1)
    return mean, (density * (value(x) - mean[:, None]) ** 2).sum(axis=1)


# Validation ------------------------------------------------------------------------------------


def check_order(kind: str, low: np.ndarray, high: np.ndarray) -> None:
    """Raises ValueError unless low ≤ high everywhere."""
    if (low > high).any():
        worst = int(np.argmax(low - high))
        raise ValueError(
            f"{kind} component {worst} has low {low[worst]:g} > high {high[worst]:g}: swap them"
        )


def check_positive(kind: str, what: str, vector: np.ndarray) -> None:
    """Raises ValueError unless every entry is above 0."""
    if not (vector > 0).all():
        worst = int(np.argmin(vector))
        raise ValueError(
            f"{kind} component {worst} has {what} {vector[worst]:g}: give a positive number"
        )


def check_names(kind: str, names: Sequence[str], size: int) -> tuple[str, ...]:
    """The names as a tuple, or a ValueError unless there is a different one for each component."""
    if len(names) != size or len(set(names)) != size:
        raise ValueError(
            f"{kind} has {size} components and the names {tuple(names)}: give one name, different "
            "from the others, for each component"
        )
    return tuple(names)


def _check_vectors(kind: str, vectors: dict[str, np.ndarray]) -> None:
    shapes = {vector.shape for vector in vectors.values()}
    if len(shapes) != 1 or len(shapes.pop()) != 1:
        given = " and ".join(f"{name} of shape {v.shape}" for name, v in vectors.items())
        raise ValueError(
            f"{kind} needs vectors of one length, got {given}: give one number for each component "
            "of alpha in each of them"
        )
    for name, vector in vectors.items():
        if not np.isfinite(vector).all():
            raise ValueError(
                f"{kind} needs finite numbers, got {name} {vector}: replace the others"
            )
