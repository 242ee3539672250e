"""How much a representation changes with the transformation: variances, and how many directions.

Features come as `[b, p, d]`: b images, each under p alphas with its own beta held fixed
(`features.conditional_features`), scaled to unit length (`objectives.features.unit_rows`) as in
Eq. 5.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from invclr_jax.evaluation import checks
from invclr_jax.evaluation.checks import Values
from invclr_jax.evaluation.correlations import canonical_correlations as canonical_correlations

Features = Float[Values, "b p d"]


class Variances(NamedTuple):
    """Attributes:
    conditional: V_cond, Eq. 7 averaged over all e: mean over images of `per_image`.
    total: V_total, sum over coordinates of the variance of all b·p features (Bessel).
    ratio: V_cond/V_total, 0 for invariant features and 1 if the image does not matter.
    per_image: sum over coordinates of each image's sample variance (Bessel).
    """

    conditional: Float[Array, ""]
    total: Float[Array, ""]
    ratio: Float[Array, ""]
    per_image: Float[Array, " b"]


def variances(features: Features) -> Variances:
    """V_cond (Eq. 7), V_total and their ratio.

    Args:
      features: as the module says.
    """
    features = _checked(features)
    per_image = jnp.var(features, axis=1, ddof=1).sum(-1)
    conditional, total = per_image.mean(), _spread(features.reshape(-1, features.shape[-1]))
    return Variances(conditional, total, conditional / total, per_image)


def conditional_variance_along(features: Features, e: Float[Values, "b d"]) -> Float[Array, " b"]:
    """Eq. 7 before its mean over images: sample variance over alpha of F = e·z/|z|.

    Args:
      features: as the module says.
      e: one direction per image.
    """
    return jnp.var(_project(_checked(features), e), axis=1, ddof=1)


def as_published(features: Features, e: Float[Values, "b d"] | None = None) -> Float[Array, ""]:
    """What the authors' figure shows: *not* a conditional variance, for comparison only.

    Args:
      features: as the module says.
      e: one direction per group; None for the average over all directions.
    """
    mixed = mixed_axes(features)
    if e is not None:
        return conditional_variance_along(mixed, e).mean()
    return variances(mixed).conditional


def mixed_axes(features: Features) -> Float[Array, "b p d"]:
    """Regroups features as the authors' script does.

    Its rows are written image by image and read back pass by pass, so that the p members of each
    group are different images (where b ≥ p): their variance is close to the total one.
    """
    features = jnp.asarray(features)
    b, p, d = features.shape
    return jnp.swapaxes(features.reshape(p, b, d), 0, 1)


def effective_rank(features: Float[Values, "n d"]) -> Float[Array, ""]:
    """exp(entropy) of the covariance's eigenvalues, scaled to sum to 1 (Roy and Vetterli, 2007).

    Args:
      features: z of many samples; d directions of equal variance give d; one, or none, gives 1.
    """
    features = jnp.asarray(features)
    if features.ndim != 2 or len(features) < 2:
        raise ValueError(f"effective rank needs features [n, d] of n ≥ 2, got {features.shape}")
    centred = features - features.mean(0, keepdims=True)
    eigenvalues = jnp.linalg.eigvalsh(jnp.matmul(centred.T, centred, precision="highest"))
    eigenvalues = jnp.maximum(eigenvalues, 0)  # rounding
    total = eigenvalues.sum()
    shares = eigenvalues / jnp.where(total > 0, total, 1)
    return jnp.exp(jax.scipy.special.entr(shares).sum())


def _checked(features: Features) -> Float[Array, "b p d"]:
    features = jnp.asarray(features)
    if features.ndim != 3 or features.shape[1] < 2 or features.shape[0] < 1:
        raise ValueError(
            "variances need features [images, alphas, d] with at least 2 alphas per image, got "
            f"{features.shape}"
        )
    if not isinstance(features, jax.core.Tracer):
        checks.finite(features, "features")
    return features


def _project(features: Array, e: Float[Values, "b d"]) -> Float[Array, "b p"]:
    return jnp.einsum("bpd,bd->bp", features, jnp.asarray(e), precision="highest")


def _spread(rows: Float[Array, "n d"]) -> Float[Array, ""]:
    return jnp.var(rows, axis=0, ddof=1).sum()
