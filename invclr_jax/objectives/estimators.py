"""Estimators of the invariance penalty (the last term of Eq. 13): each draws, and each computes.

All but `Finite` estimate the quantity at the head of `derivatives.py`: `Sampled` and `Moments` by
reverse mode from random signs e, `Forward` and `Exact` by forward mode for all e. Randomness is
apart from the computation: `draw` gives arrays with one row for each sample, so that on several
devices one draws for all samples and takes `parallel.local_rows`, and the numbers do not depend on
the number of devices.
"""

import dataclasses
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.objectives import pairs
from invclr_jax.objectives.derivatives import (
    RepresentWithAux,
    moment_directions,
    moments_square,
    pull_back,
    push_forward,
    pushed_square,
    sampled_square,
)
from invclr_jax.objectives.features import FEATURES
from invclr_jax.parallel import Axis
from invclr_jax.transforms.base import Distribution

Noise = dict[str, Array]
Estimate = tuple[Float[Array, ""], Float[Array, "k d"], Any]
PAIRS = ("alpha", "views")


@runtime_checkable
class Estimator(Protocol):
    """One way to estimate the penalty; any object with these attributes works."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features h that it can take."""
        ...

    def draw(self, key: PRNGKeyArray, n: int, *, box: Distribution, dim: int) -> Noise:
        """Random numbers for `n` samples, arrays with leading axis n.

        Args:
          key: what they are drawn from.
          n: number of samples.
          box: the distribution of alpha.
          dim: d, the number of components of z.
        """
        ...

    def __call__(
        self,
        represent: RepresentWithAux,
        alpha: Float[Array, "k a"],
        noise: Noise,
        *,
        box: Distribution,
        feature: str,
        axis: Axis = None,
        z_prime: Float[Array, "k d"] | None = None,
    ) -> Estimate:
        """The penalty together with z, from one forward pass (`Finite` may need a second).

        Args:
          represent: this device's alpha `[k, a]` -> (z `[k, d]`, aux).
          alpha: where the derivative is taken, `[k, a]`.
          noise: this device's rows of what `draw` gave.
          box: the distribution of alpha.
          feature: one of `features`.
          axis: mapped axis whose devices hold the rest of the batch.
          z_prime: representations of the same x under independent transformations, `[k, d]`, such
            as the second view; only `Finite` uses it.

        Returns:
          Mean over this device's samples (the mean of it over devices is the whole batch's
          penalty), z and aux.
        """
        ...

    def takes_second_view(self, beta: Any) -> bool:
        """Whether the second view serves as `z_prime`, where the first was drawn with `beta`."""
        ...


@dataclasses.dataclass(frozen=True)
class _FirstOrder:
    """What the estimators of the derivative share."""

    features: ClassVar[tuple[str, ...]] = FEATURES

    def takes_second_view(self, beta: Any) -> bool:
        """They look at the first view only."""
        return False


@dataclasses.dataclass(frozen=True)
class Sampled(_FirstOrder):
    """The paper's: one sign vector e and L alpha' for each sample, reverse mode.

    Attributes:
      num_samples: L.
    """

    num_samples: int = 100

    def __post_init__(self):
        if self.num_samples < 1:
            raise ValueError(
                f"num_samples must be at least 1, got {self.num_samples}: the paper uses 100"
            )

    def draw(self, key, n, *, box, dim):
        """`alpha_prime` `[n, l, a]` and the signs `e` `[n, d]`."""
        alpha_key, sign_key = jax.random.split(key)
        return {
            "alpha_prime": _alpha_prime(alpha_key, n, self.num_samples, box),
            "e": _signs(sign_key, n, dim),
        }

    def __call__(self, represent, alpha, noise, *, box, feature, axis=None, z_prime=None):
        """Mean over l and i of [g_i·(alpha'_li - alpha_i)]²."""
        z, pull, aux = pull_back(represent, alpha, feature, axis)
        return sampled_square(pull(noise["e"]), _shift(alpha, noise)), z, aux


@dataclasses.dataclass(frozen=True)
class Moments(_FirstOrder):
    """One sign vector e for each sample, the expectation over alpha', reverse mode."""

    def draw(self, key, n, *, box, dim):
        """The signs `e` `[n, d]`."""
        return {"e": _signs(jax.random.split(key)[1], n, dim)}

    def __call__(self, represent, alpha, noise, *, box, feature, axis=None, z_prime=None):
        """mean_i [Σ_j g_ij² variance_j + (g_i·(mean - alpha_i))²]."""
        z, pull, aux = pull_back(represent, alpha, feature, axis)
        return moments_square(pull(noise["e"]), alpha, box), z, aux


@dataclasses.dataclass(frozen=True)
class Forward(_FirstOrder):
    """The expectation over e, one direction alpha' - alpha for each sample, forward mode."""

    def draw(self, key, n, *, box, dim):
        """`alpha_prime` `[n, 1, a]` and `signs` `[n, 1]` that tell samples apart."""
        alpha_key, sign_key = jax.random.split(key)
        return {
            "alpha_prime": _alpha_prime(alpha_key, n, 1, box),
            "signs": _signs(sign_key, n, 1),
        }

    def __call__(self, represent, alpha, noise, *, box, feature, axis=None, z_prime=None):
        """1/K |Σ_i s_i J_i (alpha'_i - alpha_i)|²."""
        directions = noise["signs"].T[:, :, None] * _shift(alpha, noise)
        return along(represent, alpha, directions, feature=feature, axis=axis)


@dataclasses.dataclass(frozen=True)
class Exact(_FirstOrder):
    """The expectation over e and alpha', one forward derivative for each component of alpha.

    All samples share the derivatives; random signs tell them apart.
    """

    def draw(self, key, n, *, box, dim):
        """`signs` `[n, a]` that tell samples apart, one for each derivative."""
        return {"signs": _signs(jax.random.split(key)[1], n, box.size)}

    def __call__(self, represent, alpha, noise, *, box, feature, axis=None, z_prime=None):
        """mean_i [Σ_j variance_j |J_ij|² + |J_i (mean - alpha_i)|²]."""
        directions = moment_directions(box, alpha)
        signs = noise["signs"].T[: len(directions), :, None]
        return along(represent, alpha, signs * directions, feature=feature, axis=axis)


@dataclasses.dataclass(frozen=True)
class Finite:
    """The difference itself: another view z' of the same x instead of a derivative.

    Attributes:
      pair: what z' is. `alpha`: the same beta under another alpha, which takes a forward pass
        unless there is no beta and the second view serves. `views`: the second view as it is,
        alpha and beta both drawn anew.
      ridge: of the feature `canonical`; None for `stable_ridge`, which suits the batch.
      temperature: of the feature `infonce`.
    """

    pair: str = "alpha"
    ridge: float | None = None
    temperature: float = 0.5

    features: ClassVar[tuple[str, ...]] = (*FEATURES, *pairs.PAIR_LOSSES)

    def __post_init__(self):
        if self.pair not in PAIRS:
            raise ValueError(f"pair is {self.pair!r}: use one of {', '.join(PAIRS)}")

    def draw(self, key, n, *, box, dim):
        """`alpha_prime` `[n, 1, a]`."""
        return {"alpha_prime": _alpha_prime(jax.random.split(key)[0], n, 1, box)}

    def __call__(self, represent, alpha, noise, *, box, feature, axis=None, z_prime=None):
        """Twice V (Eq. 6, 11) with no expansion in alpha, or a loss of the pair."""
        z, aux = represent(alpha)
        if z_prime is None:
            if self.pair == "views":
                raise ValueError("Finite(pair='views') needs z_prime, the second view")
            z_prime, _ = represent(noise["alpha_prime"][:, 0])
        return self.compare(z, z_prime, feature=feature, axis=axis), z, aux

    def compare(self, z: Array, z_prime: Array, *, feature: str, axis: Axis = None) -> Array:
        """The penalty of pairs that are given."""
        if feature in FEATURES:
            return pairs.squared_distance(z, z_prime, feature=feature, axis=axis)
        return pairs.pair_loss(
            z, z_prime, feature, ridge=self.ridge, temperature=self.temperature, axis=axis
        )

    def takes_second_view(self, beta: Any) -> bool:
        """Where it is asked for, or where nothing but alpha varies."""
        return self.pair == "views" or beta is None


ESTIMATORS: dict[str, Any] = {
    "sampled": Sampled,
    "moments": Moments,
    "forward": Forward,
    "exact": Exact,
    "finite": Finite,
}


def along(
    represent: RepresentWithAux,
    alpha: Float[Array, "k a"],
    directions: Float[Array, "r k a"],
    *,
    feature: str,
    axis: Axis = None,
) -> Estimate:
    """1/K Σ_r |Σ_i J_i v_ri|² by forward mode, with z and aux."""
    z, push, aux = push_forward(represent, alpha, feature, axis)
    return pushed_square(push, directions), z, aux


def _alpha_prime(key: PRNGKeyArray, n: int, count: int, box: Distribution) -> Float[Array, "n l a"]:
    return box.sample(key, n * count).reshape(n, count, box.size)


def _signs(key: PRNGKeyArray, n: int, count: int) -> Float[Array, "n r"]:
    return jax.random.rademacher(key, (n, count), float)


def _shift(alpha: Array, noise: Noise) -> Float[Array, "l k a"]:
    """alpha' - alpha."""
    return noise["alpha_prime"].swapaxes(0, 1) - alpha[None]
