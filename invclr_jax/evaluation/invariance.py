"""How much a representation changes with the transformation: variances and what z tells of alpha.

Features come as `[b, p, d]`: b images, each under p alphas with its own beta held fixed
(`features.conditional_features`), scaled to unit length (`unit`) as in Eq. 5.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.data.splits import validation_indices
from invclr_jax.evaluation import checks
from invclr_jax.evaluation.checks import Values
from invclr_jax.evaluation.correlations import canonical_correlations as canonical_correlations
from invclr_jax.evaluation.metrics import squared_error
from invclr_jax.evaluation.probes import Regressor
from invclr_jax.evaluation.selection import GRID, regression_path

Features = Float[Values, "b p d"]

LEAST_KURTOSIS = 10
"""A feature below it is not called rare, however few rows there are."""


class Variances(NamedTuple):
    """Attributes:
    conditional: V_cond, Eq. 7 averaged over all e: mean over images of `per_image`.
    total: V_total, sum over coordinates of the variance of all b·p features (Bessel).
    ratio: V_cond/V_total, 0 for invariant features and 1 where the image does not matter.
    per_image: sum over coordinates of each image's sample variance (Bessel).
    """

    conditional: Float[Array, ""]
    total: Float[Array, ""]
    ratio: Float[Array, ""]
    per_image: Float[Array, " b"]


def unit(features: Float[Values, "*n d"]) -> Float[Array, "*n d"]:
    """z/|z|; a zero vector stays zero."""
    features = jnp.asarray(features)
    length = jnp.linalg.norm(features, axis=-1, keepdims=True)
    return features / jnp.where(length > 0, length, 1)


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
      e: a direction for each image.
    """
    return jnp.var(_project(_checked(features), e), axis=1, ddof=1)


def as_published(features: Features, e: Float[Values, "b d"] | None = None) -> Float[Array, ""]:
    """What the authors' figure shows: *not* a conditional variance, for comparison only.

    Args:
      features: as the module says.
      e: a direction for each group; None for the average over all directions.
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


def averaged_variance(
    features: Features, num_samples: int, *, e: Float[Values, "b d"] | None = None
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Conditional variance of features averaged over M transformations, in two ways.

    Args:
      features: as the module says.
      num_samples: M.
      e: a direction for each image; None for the average over all directions.

    Returns:
      The paper's V/M, and the sample variance between means of consecutive groups of M (NaN where
      there are fewer than two groups). They agree for independent transformations.
    """
    features = _checked(features)
    checks.at_least_one(num_samples, "M")
    groups = features.shape[1] // num_samples
    values = features if e is None else _project(features, e)[..., None]
    plugin = jnp.var(values, axis=1, ddof=1).sum(-1).mean() / num_samples
    if groups < 2:
        return plugin, jnp.full_like(plugin, jnp.nan)
    means = values[:, : groups * num_samples].reshape(len(values), groups, num_samples, -1).mean(2)
    return plugin, jnp.var(means, axis=1, ddof=1).sum(-1).mean()


def variance_across_images(features: Features, num_samples: int) -> Float[Array, ""]:
    """Variance over images of the mean of the first M features, summed over coordinates."""
    checks.at_least_one(num_samples, "M")
    return _spread(_checked(features)[:, :num_samples].mean(1))


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


@dataclasses.dataclass(frozen=True, eq=False)
class AlphaPrediction:
    """How well a linear model reads alpha from z.

    Attributes:
      mse: test error of each component.
      reference: test error of the constant predictor, the mean of the training alphas.
      l2: weight chosen for each component on a validation split.
    """

    mse: Float[np.ndarray, " a"]
    reference: Float[np.ndarray, " a"]
    l2: Float[np.ndarray, " a"]


def predict_alpha(
    features: Float[Values, "n d"],
    alpha: Float[Values, "n a"],
    test_features: Float[Values, "t d"],
    test_alpha: Float[Values, "t a"],
    *,
    grid: Sequence[float] = GRID,
    validation_fraction: float = 0.1,
    seed: int = 0,
    method: str = "closed_form",
) -> AlphaPrediction:
    """Ridge regression of alpha on standardised features: a higher error, more invariance.

    The objective is a sum over components, so that each takes its own l2 from one path of fits.
    Features that vary in a few rows only are left out, see `_standardised`.

    Args:
      features: z of training samples, one random transformation each.
      alpha: of that transformation.
      test_features: z of test samples.
      test_alpha: theirs.
      grid: weights to choose from.
      validation_fraction: of the training rows, held out to choose by.
      seed: of that split.
      method: `closed_form` or `lbfgs`.
    """
    train = checks.finite_rows(features, "features")
    alpha = checks.finite_rows(alpha, "alpha", rows=len(train))
    test = checks.finite_rows(test_features, "test features")
    test_alpha = checks.finite_rows(test_alpha, "test alpha", rows=len(test))
    fit, held_out = validation_indices(np.asarray(alpha), validation_fraction, seed=seed)
    train, test = _standardised(train, test, len(held_out))
    trial = regression_path(train[fit], alpha[fit], grid=grid, method=method)
    best = np.argmin(_errors(trial, train[held_out], alpha[held_out]), axis=0)

    final = regression_path(train, alpha, grid=grid, method=method)
    constant = jnp.broadcast_to(alpha.mean(0, keepdims=True), test_alpha.shape)
    return AlphaPrediction(
        mse=_errors(final, test, test_alpha)[best, np.arange(len(best))],
        reference=np.asarray(squared_error(constant, test_alpha)),
        l2=np.array([probe.l2 for probe in final])[best],
    )


def _standardised(train: Array, test: Array, held_out: int) -> tuple[Array, Array]:
    """Both with the training rows' mean 0 and variance 1, or 0 where that variance says nothing.

    A unit that is active in one training row out of thousands has a tiny deviation, and a weight
    that this row alone decides; a test row may be thousands of deviations away. A feature that
    varies equally in k of n rows has a kurtosis of n/k, a normal one 3. Above the number of rows
    held out, less than one of those is expected to vary, and none can warn of such a weight.

    Args:
      train: training features, `[n, d]`.
      test: test features, `[t, d]`.
      held_out: how many of the training rows choose l2.
    """
    mean, std = train.mean(0, keepdims=True), train.std(0, keepdims=True)
    std = jnp.where(std > 0, std, 1)
    train, test = (train - mean) / std, (test - mean) / std
    kurtosis = jnp.mean(train**4, axis=0, keepdims=True)
    rare = kurtosis > max(held_out, LEAST_KURTOSIS)
    return jnp.where(rare, 0, train), jnp.where(rare, 0, test)


def _errors(path: Sequence[Regressor], features: Array, targets: Array) -> np.ndarray:
    """Squared error of each probe in each output."""
    return np.stack([squared_error(probe.predict(features), targets) for probe in path])


def _checked(features: Features) -> Float[Array, "b p d"]:
    features = jnp.asarray(features)
    if features.ndim != 3 or features.shape[1] < 2 or features.shape[0] < 1:
        raise ValueError(
            "variances need features [images, alphas, d] with at least 2 alphas an image, got "
            f"{features.shape}"
        )
    if not isinstance(features, jax.core.Tracer):
        checks.finite(features, "features")
    return features


def _project(features: Array, e: Float[Values, "b d"]) -> Float[Array, "b p"]:
    return jnp.einsum("bpd,bd->bp", features, jnp.asarray(e), precision="highest")


def _spread(rows: Float[Array, "n d"]) -> Float[Array, ""]:
    return jnp.var(rows, axis=0, ddof=1).sum()
