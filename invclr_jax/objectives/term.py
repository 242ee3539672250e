"""The invariance penalty as a term of the loss: its estimator, weight and clip."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from invclr_jax.objectives.derivatives import RepresentWithAux
from invclr_jax.objectives.estimators import Estimate, Estimator, Finite, Noise, Sampled
from invclr_jax.objectives.features import FEATURES, Scalar
from invclr_jax.parallel import Axis, mean_over_devices
from invclr_jax.transforms.base import Distribution


@dataclasses.dataclass(frozen=True)
class Penalty:
    """What a method adds to its loss: λ·min(penalty, clip).

    Attributes:
      weight: lambda, a number or a schedule over steps.
      estimator: how the penalty is estimated.
      feature: the feature h of z whose variance is penalised, one of `estimator.features`.
      clip: the largest value of the penalty that has a gradient; the mean over the batch is
        clipped.
      every: apply it each n-th step with n times the weight.
    """

    weight: float | optax.Schedule = 0.1
    estimator: Estimator = dataclasses.field(default_factory=Sampled)
    feature: str = "unit"
    clip: float = float("inf")
    every: int = 1

    def __post_init__(self):
        check_feature(self.feature, self.estimator.features)

    def is_due(self, step: int) -> bool:
        """Whether the penalty is part of this step."""
        return step % self.every == 0

    def __call__(
        self,
        represent: RepresentWithAux,
        alpha: Float[Array | np.ndarray, "k a"],
        noise: Noise,
        *,
        box: Distribution,
        axis: Axis = None,
        z_prime: Float[Array, "k d"] | None = None,
    ) -> Estimate:
        """The estimate, z and aux; see `Estimator.__call__`."""
        alpha = checked_alpha(alpha, box)
        noise = {name: jnp.asarray(rows, alpha.dtype) for name, rows in noise.items()}
        return self.estimator(
            represent,
            alpha,
            noise,
            box=box,
            feature=self.feature,
            axis=axis,
            z_prime=z_prime,
        )

    def term(
        self, value: Float[Array, ""], step: Array | int, axis: Axis = None
    ) -> tuple[Array, Array]:
        """What is added to the loss, and the penalty's mean over devices for the log."""
        mean = mean_over_devices(value, axis)
        weight = self.weight(step) if callable(self.weight) else self.weight
        return weight * self.every * clip_from_above(mean, self.clip), mean


def clip_from_above(value: Scalar, limit: Scalar) -> Float[Array, ""]:
    """min(value, limit), whose gradient is zero above the limit. NaN stays NaN.

    The paper clips the mean over the batch. On several devices pass `mean_over_devices(value)`:
    each then holds the same clipped value, whose gradient follows the convention of `parallel.py`.

    Args:
      value: the penalty.
      limit: the largest value that is let through; infinity switches the clip off.

    Returns:
      The clipped penalty.
    """
    value = jnp.asarray(value)
    return jnp.where(value > limit, jnp.asarray(limit, value.dtype), value)


def check_feature(feature: str, known: tuple[str, ...] = FEATURES) -> None:
    """Raises on a feature that does not exist, or that the estimator cannot take."""
    if feature in known:
        return
    if feature in Finite.features:
        raise ValueError(
            f"the feature {feature!r} compares pairs and has no derivative in alpha: use the "
            "estimator finite"
        )
    raise ValueError(f"no feature {feature!r}: there are {', '.join(known)}")


def checked_alpha(alpha: Array | np.ndarray, box: Distribution | None = None) -> Array:
    """Alpha as a JAX array, once it and `box` are known to fit together."""
    if alpha.ndim != 2:
        raise ValueError(f"alpha has shape {alpha.shape}: it must be [K, a], a row for each sample")
    if box is not None and alpha.shape[1] != box.size:
        raise ValueError(
            f"alpha has {alpha.shape[1]} columns but the box has {box.size} components: "
            "give the box of the transform that drew alpha"
        )
    return jnp.asarray(alpha)
