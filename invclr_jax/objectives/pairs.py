"""Losses on pairs (z, z'), which the estimator `finite` offers instead of a derivative in alpha.

`squared_distance` is the paper's quantity; `canonical` is ours, and the others are the baselines
that it is judged against.
"""

from typing import Literal, get_args

import jax.numpy as jnp
from jaxtyping import Array, Float

from invclr_jax.objectives.canonical import canonical_penalty, stable_ridge
from invclr_jax.objectives.contrastive import info_nce
from invclr_jax.objectives.features import apply_feature
from invclr_jax.objectives.redundancy import vicreg
from invclr_jax.parallel import Axis, axis_size

PairLoss = Literal["canonical", "infonce", "varcov", "vicreg"]
PAIR_LOSSES: tuple[str, ...] = get_args(PairLoss)


def squared_distance(
    z: Float[Array, "k d"], z_prime: Float[Array, "k d"], *, feature: str, axis: Axis = None
) -> Float[Array, ""]:
    """mean_i |h(alpha_i) - h(alpha'_i)|²: twice V (Eq. 6, 11) with no expansion in alpha.

    It needs no factor: Eq. 13's term is twice V-hat (Eq. 12) and approximates the same quantity.
    Where `feature` has batch statistics they are those of z and z' together: one yardstick for
    both, so that `relative` is |z - z'|² over the total variance. Statistics of each apart would
    hide what the new alpha' do to all samples alike, an error of order 1/K.

    Args:
      z: this device's representations, `[k, d]`.
      z_prime: of the same inputs under other transformations, `[k, d]`.
      feature: `unit`, `centred` or `relative`.
      axis: mapped axis whose devices hold the rest of the batch.
    """
    h, h_prime = jnp.split(apply_feature(jnp.concatenate([z, z_prime]), feature, axis=axis), 2)
    return jnp.mean(jnp.sum((h - h_prime) ** 2, axis=-1))


def pair_loss(
    z: Float[Array, "k d"],
    z_prime: Float[Array, "k d"],
    name: str,
    *,
    ridge: float | None = None,
    temperature: float = 0.5,
    axis: Axis = None,
) -> Float[Array, ""]:
    """A loss of pairs by name.

    Args:
      z: this device's representations, `[k, d]`.
      z_prime: of the same inputs under other transformations, `[k, d]`.
      name: `canonical`; `infonce`, Eq. 3 on z itself; `vicreg`, mean |z - z'|² per component plus
        `varcov`; `varcov`, VICReg's variance and covariance terms. VICReg's weights 25, 25, 1 are
        divided by 25.
      ridge: of `canonical`; None for `stable_ridge`.
      temperature: of `infonce`.
      axis: mapped axis whose devices hold the rest of the batch.

    Returns:
      A value whose mean over devices is the whole batch's.
    """
    if name == "canonical":
        if ridge is None:
            ridge = stable_ridge(len(z) * axis_size(axis), z.shape[1])
        return canonical_penalty(z, z_prime, ridge=ridge, axis=axis)
    if name == "infonce":
        return info_nce(z, z_prime, temperature, axis=axis)
    return vicreg(z, z_prime, float(name == "vicreg"), 1.0, 1 / 25, axis=axis)
