"""The derivative of features in alpha, seen from both sides, and the moments of alpha'.

Write h for the feature of z and J_i for the derivative of *all* h in alpha_i: batch norm in train
mode makes every h depend on every alpha. The penalty (the last term of Eq. 13) estimates

    1/K Σ_i E|J_i (alpha' - alpha_i)|² = 1/K Σ_i E[(e·J_i (alpha' - alpha_i))²],

where the components of e are independent signs, so that E[e eᵀ] is the identity (appendix B).
Reverse mode gives g_i = e·J_i for all i at once. Forward mode gives Σ_i J_i v_i, all components of
h at once; the sum over i is undone by independent signs s_i, as E[s_i s_k] = 0 for i ≠ k:

    E|Σ_i s_i J_i v_i|² = Σ_ik E[s_i s_k] (J_i v_i)·(J_k v_k) = Σ_i |J_i v_i|².
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.objectives.features import apply_feature
from invclr_jax.parallel import Axis
from invclr_jax.transforms.base import Distribution

RepresentWithAux = Callable[[Array], tuple[Array, Any]]
"""alpha `[K, a]` -> z `[K, d]` and what else to keep of the forward pass (batch statistics)."""


def pull_back(
    represent: RepresentWithAux, alpha: Float[Array, "k a"], feature: str, axis: Axis = None
) -> tuple[Float[Array, "k d"], Callable[[Array], Array], Any]:
    """Reverse mode, after one forward pass.

    Args:
      represent: alpha -> (z, aux).
      alpha: where the derivative is taken, `[k, a]`.
      feature: the feature h of z.
      axis: mapped axis; J_i then runs over the samples of all devices, since collectives carry
        their cotangents to this one.

    Returns:
      z; the function e `[k, d]` -> g `[k, a]` with g_i = e·J_i; aux.
    """
    z, pull_z, aux = jax.vjp(represent, alpha, has_aux=True)
    h, pull_h = jax.vjp(lambda x: apply_feature(x, feature, axis=axis), z)

    def pull(e):
        if e.shape != h.shape:
            raise ValueError(f"e has shape {e.shape}: it must be that of z, {h.shape}")
        return pull_z(*pull_h(jnp.asarray(e, h.dtype)))[0]

    return z, pull, aux


def push_forward(
    represent: RepresentWithAux, alpha: Float[Array, "k a"], feature: str, axis: Axis = None
) -> tuple[Float[Array, "k d"], Callable[[Array], Array], Any]:
    """Forward mode, after one forward pass; arguments as of `pull_back`.

    Returns:
      z; the function v `[k, a]` -> Σ_i J_i v_i `[k, d]`, the sum over all devices' i; aux.
    """
    z, push_z, aux = jax.linearize(represent, alpha, has_aux=True)
    _, push_h = jax.linearize(lambda x: apply_feature(x, feature, axis=axis), z)
    return z, lambda v: push_h(push_z(v)), aux


def sampled_square(g: Float[Array, "k a"], shift: Float[Array, "l k a"]) -> Float[Array, ""]:
    """Mean over l and k of (g_k·shift_lk)², with shift = alpha' - alpha."""
    return jnp.mean(jnp.sum(g[None] * shift, axis=-1) ** 2)


def moments_square(
    g: Float[Array, "k a"], alpha: Float[Array, "k a"], box: Distribution
) -> Float[Array, ""]:
    """Expectation of `sampled_square` over alpha' in the box."""
    variance, mean = (jnp.asarray(m, alpha.dtype)[None] for m in (box.variance, box.mean))
    spread = jnp.sum(g**2 * variance, axis=-1)
    return jnp.mean(spread + jnp.sum(g * (mean - alpha), axis=-1) ** 2)


def pushed_square(
    push: Callable[[Array], Array], directions: Float[Array, "r k a"]
) -> Float[Array, ""]:
    """Sum over r of the mean over k of |push(directions_r)_k|².

    A loop in Python: the directions are few, and XLA's CPU backend runs convolutions inside a
    `lax.map` 20 times slower, under `vmap` (whose batching rule not every convolution has) 4 times.
    """
    return sum(
        (jnp.mean(jnp.sum(push(v) ** 2, axis=-1)) for v in directions),
        start=jnp.zeros((), directions.dtype),
    )


def moment_directions(box: Distribution, alpha: Float[Array, "k a"]) -> Float[Array, "r k a"]:
    """At most a directions v_ri with Σ_r v_ri v_riᵀ = E[(alpha' - alpha_i)(alpha' - alpha_i)ᵀ].

    That moment is S² + δδᵀ for S² = diag(variance) and δ = mean - alpha_i. With u = S⁻¹δ and
    c = 1/(1 + sqrt(1 + |u|²)) it equals R Rᵀ for R = S + c δuᵀ, whose columns are returned. Where S
    is singular the columns of S that are not zero, and δ, are no more than a directions either.
    """
    deviation = np.sqrt(box.variance)
    varies = deviation > 0
    delta = jnp.asarray(box.mean, alpha.dtype)[None] - alpha
    columns = jnp.asarray(np.diag(deviation)[varies], alpha.dtype)[:, None]
    if not varies.all():
        columns = jnp.broadcast_to(columns, (len(columns), *alpha.shape))
        return jnp.concatenate([columns, delta[None]])
    u = delta / jnp.asarray(deviation, alpha.dtype)[None]
    c = 1 / (1 + jnp.sqrt(1 + jnp.sum(u**2, axis=-1, keepdims=True)))
    return columns + (c * delta)[None] * u.T[:, :, None]
