"""The invariance penalty of Eq. 13 of a plain function alpha -> z.

`penalty` draws and estimates; `sampled_penalty` and its like do so for draws that are given. What a
method adds to its loss is `Penalty`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.objectives.canonical import canonical_penalty
from invclr_jax.objectives.derivatives import (
    RepresentWithAux,
    moment_directions,
    push_forward,
    pushed_square,
)
from invclr_jax.objectives.estimators import (
    ESTIMATORS,
    Estimator,
    Exact,
    Finite,
    Moments,
    Sampled,
    along,
)
from invclr_jax.objectives.features import FEATURES
from invclr_jax.objectives.term import Penalty, check_feature, checked_alpha, clip_from_above
from invclr_jax.parallel import Axis
from invclr_jax.transforms.base import Distribution

__all__ = [
    "ESTIMATORS",
    "FEATURES",
    "Penalty",
    "canonical_penalty",
    "clip_from_above",
    "exact_penalty",
    "finite_penalty",
    "forward_penalty",
    "make_estimator",
    "moments_penalty",
    "penalty",
    "sampled_penalty",
]

Represent = Callable[[Array], Array]
"""alpha `[K, a]` -> z `[K, d]`: a closure over x, beta and the parameters."""


def penalty(
    represent: Represent,
    alpha: Float[Array | np.ndarray, "k a"],
    *,
    box: Distribution,
    key: PRNGKeyArray,
    estimator: str | Estimator = "sampled",
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
        the cost of K·a derivatives) or `finite` (one more forward pass); or an object.
      num_samples: L, the number of alpha' for each sample; only `sampled` uses it.
      feature: `unit` (the paper's), `centred` or `relative`; with `finite` also `canonical`.

    Returns:
      The penalty.
    """
    if estimator == "exact":
        return exact_penalty(represent, alpha, box, feature=feature)
    if isinstance(estimator, str):
        estimator = make_estimator(estimator, num_samples=num_samples)
    checked_alpha(alpha, box)
    dim = jax.eval_shape(represent, alpha).shape[-1]
    noise = estimator.draw(key, len(alpha), box=box, dim=dim)
    term = Penalty(estimator=estimator, feature=feature)
    return term(_without_aux(represent), jnp.asarray(alpha), noise, box=box)[0]


def make_estimator(name: str, **options: Any) -> Estimator:
    """An estimator by name.

    Args:
      name: a key of `ESTIMATORS`.
      **options: `num_samples`, `pair`, `ridge` and `temperature`; each takes those it knows.
    """
    if name not in ESTIMATORS:
        raise ValueError(f"no estimator {name!r}: there are {', '.join(ESTIMATORS)}")
    known = {field.name for field in dataclasses.fields(ESTIMATORS[name])}
    return ESTIMATORS[name](**{key: value for key, value in options.items() if key in known})


def sampled_penalty(
    represent: Represent,
    alpha: Float[Array | np.ndarray, "k a"],
    alpha_prime: Float[Array | np.ndarray, "l k a"],
    e: Float[Array | np.ndarray, "k d"],
    *,
    feature: str = "unit",
) -> Float[Array, ""]:
    """The paper's estimator: mean over l and i of [g_i·(alpha'_li - alpha_i)]², Eq. 13.

    Args:
      represent: alpha `[k, a]` -> z `[k, d]`.
      alpha: where the derivative is taken, `[k, a]`.
      alpha_prime: L draws of alpha for each sample, `[l, k, a]`.
      e: a sign vector for each sample, `[k, d]`.
      feature: `unit`, `centred` or `relative`.

    Returns:
      The penalty: no factor 1/2, no weight, no clip.
    """
    check_feature(feature)
    alpha = checked_alpha(alpha)
    if alpha_prime.ndim != 3 or alpha_prime.shape[1:] != alpha.shape:
        raise ValueError(
            f"alpha_prime has shape {alpha_prime.shape}: for alpha of shape {alpha.shape} it must "
            f"be [L, {alpha.shape[0]}, {alpha.shape[1]}]"
        )
    noise = {"alpha_prime": jnp.asarray(alpha_prime).swapaxes(0, 1), "e": jnp.asarray(e)}
    return Sampled()(_without_aux(represent), alpha, noise, box=None, feature=feature)[0]


def moments_penalty(
    represent: Represent,
    alpha: Float[Array | np.ndarray, "k a"],
    box: Distribution,
    e: Float[Array | np.ndarray, "k d"],
    *,
    feature: str = "unit",
) -> Float[Array, ""]:
    """`sampled_penalty` with infinitely many alpha': its expectation over the box.

    Args:
      represent: alpha `[k, a]` -> z `[k, d]`.
      alpha: where the derivative is taken, `[k, a]`.
      box: the distribution of alpha'.
      e: a sign vector for each sample, `[k, d]`.
      feature: `unit`, `centred` or `relative`.

    Returns:
      mean_i [Σ_j g_ij² variance_j + (g_i·(mean - alpha_i))²].
    """
    check_feature(feature)
    noise = {"e": jnp.asarray(e)}
    alpha = checked_alpha(alpha, box)
    return Moments()(_without_aux(represent), alpha, noise, box=box, feature=feature)[0]


def forward_penalty(
    represent: Represent,
    alpha: Float[Array | np.ndarray, "k a"],
    directions: Float[Array | np.ndarray, "k a"],
    *,
    feature: str = "unit",
) -> Float[Array, ""]:
    """One forward derivative along one direction for each sample: 1/K |Σ_i J_i v_i|².

    Args:
      represent: alpha `[k, a]` -> z `[k, d]`.
      alpha: where the derivative is taken, `[k, a]`.
      directions: v_i = s_i (alpha'_i - alpha_i) with independent signs s_i, `[k, a]`.
      feature: `unit`, `centred` or `relative`.

    Returns:
      The penalty.
    """
    check_feature(feature)
    alpha = checked_alpha(alpha)
    if directions.shape != alpha.shape:
        raise ValueError(
            f"directions have shape {directions.shape}: give one for each row of alpha, "
            f"whose shape is {alpha.shape}"
        )
    directions = jnp.asarray(directions, alpha.dtype)[None]
    return along(_without_aux(represent), alpha, directions, feature=feature)[0]


def exact_penalty(
    represent: Represent,
    alpha: Float[Array | np.ndarray, "k a"],
    box: Distribution,
    *,
    feature: str = "unit",
    signs: Float[Array | np.ndarray, " k"] | None = None,
) -> Float[Array, ""]:
    """The expectation itself, over e and over alpha'.

    Without `signs` it takes at most K·a forward derivatives, one after another, because each sample
    needs its own: a reference for small K. With `signs` all samples share at most a of them: the
    same value where no h depends on another sample's alpha, and unbiased where one does.

    Args:
      represent: alpha `[k, a]` -> z `[k, d]`.
      alpha: where the derivative is taken, `[k, a]`.
      box: the distribution of alpha'.
      feature: `unit`, `centred` or `relative`.
      signs: independent ±1 for each sample, `[k]`.

    Returns:
      mean_i [Σ_j variance_j |J_ij|² + |J_i (mean - alpha_i)|²].
    """
    check_feature(feature)
    alpha = checked_alpha(alpha, box)
    if signs is not None:
        if signs.shape != alpha.shape[:1]:
            raise ValueError(
                f"signs have shape {signs.shape}: give one ±1 for each of {len(alpha)} rows"
            )
        noise = {"signs": jnp.tile(jnp.asarray(signs, alpha.dtype)[:, None], (1, box.size))}
        return Exact()(_without_aux(represent), alpha, noise, box=box, feature=feature)[0]
    directions = moment_directions(box, alpha)
    _, push, _ = push_forward(_without_aux(represent), alpha, feature)

    # Recomputing each derivative on the way back keeps memory at that of a single one.
    @jax.checkpoint
    def of_sample(i, direction):
        own = (jnp.arange(len(alpha)) == i)[:, None]
        return pushed_square(push, jnp.where(own, direction, 0.0)[None])

    pairs = jnp.indices(directions.shape[:2]).reshape(2, -1)
    return jnp.sum(jax.lax.map(lambda pair: of_sample(pair[1], directions[pair[0]]), pairs.T))


def finite_penalty(
    z: Float[Array | np.ndarray, "k d"],
    z_prime: Float[Array | np.ndarray, "k d"],
    *,
    feature: str = "unit",
    axis: Axis = None,
) -> Float[Array, ""]:
    """The penalty of pairs that are given: mean_i |h(alpha_i) - h(alpha'_i)|², or a pair's loss.

    Args:
      z: representations at alpha, `[k, d]`.
      z_prime: representations of the same x and beta at independent alpha', `[k, d]`.
      feature: `unit`, `centred`, `relative` or a loss of pairs such as `canonical`.
      axis: mapped axis whose devices hold the rest of the batch.

    Returns:
      Mean over this device's samples.
    """
    check_feature(feature, Finite.features)
    if z.ndim != 2 or z.shape != z_prime.shape:
        raise ValueError(
            f"representations of shape {z.shape} and {z_prime.shape} cannot be compared: "
            "both must be [k, d]"
        )
    return Finite().compare(jnp.asarray(z), jnp.asarray(z_prime), feature=feature, axis=axis)


def _without_aux(represent: Represent) -> RepresentWithAux:
    return lambda alpha: (represent(alpha), None)
