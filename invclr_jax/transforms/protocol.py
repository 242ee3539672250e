"""The one abstraction: a differentiable transformation `t(x, alpha, beta)`."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.transforms.independent import Distribution


class NoPlainVersion(ValueError):
    """Raised by `untransformed` where every picture is made by some alpha."""


@runtime_checkable
class Transform(Protocol):
    """What changes a picture. Randomness lives in `sample`; `apply` is a pure function.

    Any hashable object with these four attributes works with every method, penalty, evaluation and
    experiment. beta holds what the penalty leaves alone (flips, coin tosses). Optional: `names` of
    `alpha`; `takes_images`, see the function of that name; `shifts()`, see `shifting.shifts`.
    """

    @property
    def alpha(self) -> Distribution:
        """The distribution of alpha."""
        ...

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n a"], Any]:
        """Draws alpha `[n, a]` and beta, a pytree with leading axis n (or None)."""
        ...

    def apply(self, x: Any, alpha: Float[Array, "n a"], beta: Any) -> Float[Array, "n h w c"]:
        """The transformed pictures as the encoder sees them; differentiable in alpha."""
        ...

    def untransformed(self, x: Any) -> Float[Array, "n h w c"]:
        """The plain pictures as the encoder sees them, or raises `NoPlainVersion`."""
        ...


def takes_images(transform: Transform) -> bool:
    """Whether x are pictures, as for most transforms, rather than factors that it draws."""
    return getattr(transform, "takes_images", True)


def alpha_names(transform: Transform) -> tuple[str, ...]:
    """One name for each component of alpha: those of its distribution, or made of the class's."""
    distribution = transform.alpha
    names: Sequence[str] | None = getattr(distribution, "names", None)
    if names is not None:
        return tuple(names)
    kind = type(transform).__name__.lower()
    if distribution.size == 1:
        return (kind,)
    return tuple(f"{kind}_{i}" for i in range(distribution.size))
