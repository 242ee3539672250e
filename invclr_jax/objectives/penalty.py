"""The invariance penalty of Eq. 13: draws, estimators by name, the clip.

`draw` and `estimate` are what a training step calls: randomness apart from the computation, and one
forward pass shared with the contrastive loss. `penalty` is both for a plain function alpha -> z.
"""

from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.objectives.canonical import canonical_penalty
from invclr_jax.objectives.derivatives import (
    RepresentWithAux,
    moment_directions,
    moments_square,
    pull_back,
    push_forward,
    pushed_square,
    sampled_square,
)
from invclr_jax.objectives.estimators import (
    Represent,
    checked_alpha,
    exact_penalty,
    finite_penalty,
    forward_penalty,
    moments_penalty,
    sampled_penalty,
)
from invclr_jax.objectives.features import FEATURES, Scalar
from invclr_jax.objectives.pairs import PAIR_LOSSES, pair_loss
from invclr_jax.parallel import Axis
from invclr_jax.transforms.base import Box

__all__ = [
    "ESTIMATORS",
    "FEATURES",
    "PAIR_LOSSES",
    "canonical_penalty",
    "check_choice",
    "clip_from_above",
    "draw",
    "estimate",
    "exact_penalty",
    "finite_penalty",
    "forward_penalty",
    "moments_penalty",
    "penalty",
    "sampled_penalty",
]

Estimator = Literal["sampled", "moments", "forward", "exact", "finite"]
ESTIMATORS: tuple[str, ...] = get_args(Estimator)


def penalty(
    represent: Represent,
    alpha: Float[Array | np.ndarray, "k a"],
    *,
    box: Box,
    key: PRNGKeyArray,
    estimator: str = "sampled",
    num_samples: int = 100,
    feature: str = "unit",
) -> Float[Array, ""]:
    """Estimates the last term of Eq. 13: no factor 1/2, no weight lambda, no clip.

    Args:
      represent: alpha `[k, a]` -> z `[k, d]`, a closure over x, beta and the parameters.
      alpha: where the derivative is taken, `[k, a]`.
      box: the distribution of alpha.
      key: what e, alpha' and signs are drawn from.
      estimator: `sampled` (the paper's), `moments`, `forward`, `exact` (here without signs, so at
        the cost of K·a derivatives) or `finite` (one more forward pass).
      num_samples: L, the number of alpha' for each sample; only `sampled` uses it.
      feature: `unit` (the paper's), `centred` or `relative`.

    Returns:
      The penalty.
    """
    check_choice(estimator, num_samples)
    checked_alpha(alpha, feature, box)
    if estimator == "exact":
        return exact_penalty(represent, alpha, box, feature=feature)
    noise = draw(
        key,
        len(alpha),
        box=box,
        estimator=estimator,
        num_samples=num_samples,
        dim=jax.eval_shape(represent, alpha).shape[-1],
    )
    value, _, _ = estimate(
        lambda alpha: (represent(alpha), None),
        alpha,
        noise,
        box=box,
        estimator=estimator,
        feature=feature,
    )
    return value


def draw(
    key: PRNGKeyArray, n: int, *, box: Box, estimator: str, num_samples: int = 100, dim: int
) -> dict[str, Array]:
    """Draws the random numbers of an estimator, so that `estimate` is a pure function.

    On several devices draw for the samples of all of them and take `parallel.local_rows`: the
    numbers then do not depend on the number of devices.

    Args:
      key: what they are drawn from.
      n: number of samples.
      box: the distribution of alpha.
      estimator: one of `ESTIMATORS`.
      num_samples: L, the number of alpha' for each sample; only `sampled` uses it.
      dim: d, the number of components of z.

    Returns:
      Those of these arrays that the estimator needs: `alpha_prime`, draws from the box `[n, l, a]`;
      `e`, the signs that project h, `[n, d]`; `signs` that tell samples apart, one for each forward
      derivative, `[n, r]`.
    """
    check_choice(estimator, num_samples)
    alpha_key, sign_key = jax.random.split(key)

    def alpha_prime(count):
        return box.sample(alpha_key, n * count).reshape(n, count, box.size)

    def signs(count):
        return jax.random.rademacher(sign_key, (n, count), float)

    return {
        "sampled": lambda: {"alpha_prime": alpha_prime(num_samples), "e": signs(dim)},
        "moments": lambda: {"e": signs(dim)},
        "forward": lambda: {"alpha_prime": alpha_prime(1), "signs": signs(1)},
        "exact": lambda: {"signs": signs(box.size)},
        "finite": lambda: {"alpha_prime": alpha_prime(1)},
    }[estimator]()


def estimate(
    represent: RepresentWithAux,
    alpha: Float[Array | np.ndarray, "k a"],
    noise: dict[str, Array],
    *,
    box: Box,
    estimator: str = "sampled",
    feature: str = "unit",
    axis: Axis = None,
    z_prime: Float[Array, "k d"] | None = None,
    ridge: float = 0.01,
    temperature: float = 0.5,
) -> tuple[Float[Array, ""], Float[Array, "k d"], Any]:
    """The penalty together with z, from one forward pass (two for `finite` without `z_prime`).

    `exact` shares its derivatives between samples, told apart by random signs.

    Args:
      represent: this device's alpha `[k, a]` -> (z `[k, d]`, aux).
      alpha: where the derivative is taken, `[k, a]`.
      noise: this device's rows of what `draw` gave for the same estimator.
      box: the distribution of alpha.
      estimator: one of `ESTIMATORS`.
      feature: one of `FEATURES`, with `finite` also of `PAIR_LOSSES`.
      axis: mapped axis whose devices hold the rest of the batch.
      z_prime: representations of the same x and beta at independent alpha', `[k, d]`, such as the
        second view where there is no beta; only `finite` uses it.
      ridge: of the pair loss `canonical`.
      temperature: of the pair loss `infonce`.

    Returns:
      Mean over this device's samples (the mean of it over devices is the whole batch's penalty), z
      and aux.
    """
    check_choice(estimator)
    pairwise = estimator == "finite" and feature in PAIR_LOSSES
    alpha = checked_alpha(alpha, "unit" if pairwise else feature, box)
    noise = {name: jnp.asarray(rows, alpha.dtype) for name, rows in noise.items()}
    if estimator == "finite":
        z, aux = represent(alpha)
        if z_prime is None:
            z_prime, _ = represent(noise["alpha_prime"][:, 0])
        if pairwise:
            value = pair_loss(z, z_prime, feature, ridge=ridge, temperature=temperature, axis=axis)
            return value, z, aux
        return finite_penalty(z, z_prime, feature=feature, axis=axis), z, aux
    if estimator in ("sampled", "moments"):
        z, pull, aux = pull_back(represent, alpha, feature, axis)
        return _projected(pull(noise["e"]), alpha, noise, box, estimator), z, aux
    z, push, aux = push_forward(represent, alpha, feature, axis)
    directions = _shift(alpha, noise) if estimator == "forward" else moment_directions(box, alpha)
    signs = noise["signs"].T[: len(directions), :, None]
    return pushed_square(push, signs * directions), z, aux


def _projected(g: Array, alpha: Array, noise: dict[str, Array], box: Box, estimator: str) -> Array:
    if estimator == "moments":
        return moments_square(g, alpha, box)
    return sampled_square(g, _shift(alpha, noise))


def _shift(alpha: Array, noise: dict[str, Array]) -> Array:
    """alpha' - alpha, `[l, k, a]`."""
    return noise["alpha_prime"].swapaxes(0, 1) - alpha[None]


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


def check_choice(estimator: str, num_samples: int = 1) -> None:
    """Raises on an estimator that does not exist, or on no samples."""
    if estimator not in ESTIMATORS:
        raise ValueError(f"no estimator {estimator!r}: there are {', '.join(ESTIMATORS)}")
    if num_samples < 1:
        raise ValueError(f"num_samples must be at least 1, got {num_samples}: the paper uses 100")
