"""Estimators of the invariance penalty (the last term of Eq. 13) for draws that are given.

All but `finite_penalty` estimate the quantity at the head of `derivatives.py`: `sampled` and
`moments` by reverse mode from random signs e, `forward` and `exact` by forward mode for all e.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.objectives.derivatives import (
    moment_directions,
    moments_square,
    pull_back,
    push_forward,
    pushed_square,
    sampled_square,
)
from invclr_jax.objectives.features import FEATURES, apply_feature
from invclr_jax.parallel import Axis
from invclr_jax.transforms.base import Box

Represent = Callable[[Array], Array]
"""alpha `[K, a]` -> z `[K, d]`: a closure over x, beta and the parameters."""


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
      alpha_prime: L draws from the box for each sample, `[l, k, a]`.
      e: a sign vector for each sample, `[k, d]`.
      feature: `unit`, `centred` or `relative`.

    Returns:
      The penalty: no factor 1/2, no weight, no clip.
    """
    alpha = checked_alpha(alpha, feature)
    if alpha_prime.ndim != 3 or alpha_prime.shape[1:] != alpha.shape:
        raise ValueError(
            f"alpha_prime has shape {alpha_prime.shape}: for alpha of shape {alpha.shape} it must "
            f"be [L, {alpha.shape[0]}, {alpha.shape[1]}]"
        )
    _, pull, _ = pull_back(_without_aux(represent), alpha, feature)
    return sampled_square(pull(jnp.asarray(e)), jnp.asarray(alpha_prime) - alpha[None])


def moments_penalty(
    represent: Represent,
    alpha: Float[Array | np.ndarray, "k a"],
    box: Box,
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
    alpha = checked_alpha(alpha, feature, box)
    _, pull, _ = pull_back(_without_aux(represent), alpha, feature)
    return moments_square(pull(jnp.asarray(e)), alpha, box)


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
    alpha = checked_alpha(alpha, feature)
    if directions.shape != alpha.shape:
        raise ValueError(
            f"directions have shape {directions.shape}: give one for each row of alpha, "
            f"whose shape is {alpha.shape}"
        )
    _, push, _ = push_forward(_without_aux(represent), alpha, feature)
    return pushed_square(push, jnp.asarray(directions, alpha.dtype)[None])


def exact_penalty(
    represent: Represent,
    alpha: Float[Array | np.ndarray, "k a"],
    box: Box,
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
    alpha = checked_alpha(alpha, feature, box)
    directions = moment_directions(box, alpha)
    _, push, _ = push_forward(_without_aux(represent), alpha, feature)
    if signs is not None:
        return pushed_square(push, directions * _checked_signs(signs, alpha)[None, :, None])

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
    """mean_i |h(alpha_i) - h(alpha'_i)|²: twice V (Eq. 6, 11) with no expansion in alpha.

    It needs no factor: Eq. 13's term is twice V-hat (Eq. 12) and approximates the same quantity.
    Where `feature` has batch statistics they are those of z and z' together: one yardstick for
    both, so that `relative` is |z - z'|² over the total variance. Statistics of each apart would
    hide what the new alpha' do to all samples alike, an error of order 1/K.

    Args:
      z: representations at alpha, `[k, d]`.
      z_prime: representations of the same x and beta at independent alpha', `[k, d]`.
      feature: `unit`, `centred` or `relative`.
      axis: mapped axis whose devices hold the rest of the batch.

    Returns:
      Mean over this device's samples.
    """
    check_feature(feature)
    if z.ndim != 2 or z.shape != z_prime.shape:
        raise ValueError(
            f"representations of shape {z.shape} and {z_prime.shape} cannot be compared: "
            "both must be [k, d]"
        )
    both = jnp.concatenate([jnp.asarray(z), jnp.asarray(z_prime)])
    h, h_prime = jnp.split(apply_feature(both, feature, axis=axis), 2)
    return jnp.mean(jnp.sum((h - h_prime) ** 2, axis=-1))


def check_feature(feature: str) -> None:
    """Raises on a feature that does not exist."""
    if feature not in FEATURES:
        raise ValueError(f"no feature {feature!r}: there are {', '.join(FEATURES)}")


def checked_alpha(alpha: Array | np.ndarray, feature: str, box: Box | None = None) -> Array:
    """Alpha as a JAX array, once it, `feature` and `box` are known to fit together."""
    check_feature(feature)
    if alpha.ndim != 2:
        raise ValueError(f"alpha has shape {alpha.shape}: it must be [K, a], a row for each sample")
    if box is not None and alpha.shape[1] != box.size:
        raise ValueError(
            f"alpha has {alpha.shape[1]} columns but the box has {box.size} components: "
            "give the box of the transform that drew alpha"
        )
    return jnp.asarray(alpha)


def _checked_signs(signs, alpha: Array) -> Array:
    if signs.shape != alpha.shape[:1]:
        raise ValueError(
            f"signs have shape {signs.shape}: give one ±1 for each of {len(alpha)} rows"
        )
    return jnp.asarray(signs, alpha.dtype)


def _without_aux(represent: Represent):
    return lambda alpha: (represent(alpha), None)
