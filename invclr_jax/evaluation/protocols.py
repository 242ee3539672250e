"""Everything the paper measures, and corruptions, by name: each protocol turns a context into
named numbers.

A metric's name says how it was made: `probe/lbfgs/untransformed/accuracy`,
`probe/ridge/M=40/mse/m`, `knn/k=200/untransformed/accuracy`.
"""

import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from invclr_jax.data import Dataset, fraction_indices
from invclr_jax.evaluation import invariance
from invclr_jax.evaluation.alpha import predict_alpha
from invclr_jax.evaluation.context import ALPHA, Context, Encoder, Metrics, labels_of
from invclr_jax.evaluation.corruption import corruption
from invclr_jax.evaluation.downstream import (
    fit_probe,
    knn_metrics,
    probe_metrics,
    selected_metrics,
)
from invclr_jax.evaluation.ensemble import compare, fit_each
from invclr_jax.evaluation.outcomes import NotApplicableError, Outcome, attempt
from invclr_jax.evaluation.results import Results
from invclr_jax.evaluation.robustness import robustness
from invclr_jax.evaluation.settings import Settings
from invclr_jax.objectives.features import unit_rows


def untransformed(context: Context) -> Metrics:
    """The probe on features of plain inputs, the usual protocol, and the selected probe."""
    if context.always_transformed:
        raise NotApplicableError(
            "this data has no untransformed version: every picture is drawn with some alpha; use "
            "the protocol average"
        )
    train, test = context.plain
    metrics = probe_metrics(fit_probe(context, train), context, test, "untransformed")
    return metrics | selected_metrics(context, (train, test), "untransformed")


def average(context: Context) -> Metrics:
    """The probe on features averaged over M transformations, for each M (Fig. 5).

    For the largest M, also the selected probe and kNN.
    """
    metrics: Metrics = {}
    for m, (train, test) in context.averages.items():
        metrics |= probe_metrics(fit_probe(context, train), context, test, f"M={m}")
    largest = max(context.averages)
    metrics |= selected_metrics(context, context.averages[largest], f"M={largest}")
    return metrics | knn_metrics(context, context.averages[largest], f"M={largest}")


def label_fraction(context: Context) -> Metrics:
    """The probe fitted to a fraction of the labels and tested on the whole test set (Fig. 3)."""
    name, (train, test) = context.standard
    metrics: Metrics = {}
    for fraction in context.settings.fractions:
        rows = fraction_indices(labels_of(context.train), fraction, seed=context.settings.seed)
        probe = fit_probe(context, train[rows], rows)
        metrics |= probe_metrics(probe, context, test, f"{name}/fraction={fraction:g}")
    return metrics


def conditional_variance(context: Context) -> Metrics:
    """V_cond (Eq. 6, by Eq. 7), V_total and their ratio (Fig. 2), on unit features.

    beta is one draw per image and stays fixed while alpha varies.
    """
    z = context.conditional()
    unit = unit_rows(z)
    variances = invariance.variances(unit)
    pairs = (part.reshape(-1, part.shape[-1]) for part in (z[:, :-1], z[:, 1:]))
    return {
        "invariance/conditional_variance": float(variances.conditional),
        "invariance/total_variance": float(variances.total),
        "invariance/ratio": float(variances.ratio),
        "invariance/as_published": float(invariance.as_published(unit)),
        "invariance/effective_rank": float(invariance.effective_rank(unit[:, 0])),
        "invariance/canonical_correlation": float(invariance.canonical_correlations(*pairs).mean()),
        "invariance/mean_norm": float(np.linalg.norm(z, axis=-1).mean()),
    }


def alpha(context: Context) -> Metrics:
    """How well alpha is predicted from z by linear regression (Table 1), per component.

    The reference is what a constant achieves: the variance of alpha.
    """
    (train, train_alpha), (test, test_alpha) = context.with_alpha(ALPHA)
    metrics: Metrics = {}
    for name, method in (("ridge", "closed_form"), ("lbfgs", "lbfgs")):
        predicted = predict_alpha(
            train, train_alpha, test, test_alpha, seed=context.settings.seed, method=method
        )
        metrics |= _per_component(context, f"alpha/{name}/mse", predicted.mse)
        metrics |= _per_component(context, "alpha/reference", predicted.reference)
    return metrics


def _per_component(context: Context, name: str, values: np.ndarray) -> Metrics:
    named = zip(context.alpha_names, values, strict=True)
    mean = {f"{name}/mean": float(np.mean(values))}
    return mean | {f"{name}/{component}": float(value) for component, value in named}


def ensemble(context: Context) -> Metrics:
    """Feature averaging compared with averaging a probe's probabilities on augmented features.

    At every M up to `settings.ensemble_samples`; at that number if all Ms are larger. The fold
    is the number of transformations of a training image that the ensemble's probe has seen.
    """
    if context.is_regression:
        raise NotApplicableError("ensembling averages class probabilities: this data has none")
    settings = context.settings
    most = settings.ensemble_samples
    nums = [m for m in settings.num_samples if m <= most] or [most]
    options: dict[str, Any] = {"num_classes": context.num_classes, "l2": context.l2}
    labels, test_labels = labels_of(context.train), labels_of(context.test)
    fold = min(max(nums), settings.ensemble_fold)
    classifiers = fit_each(
        context.samples(fold), labels, nums=nums, memory=settings.memory, **options
    )
    comparisons = compare(
        context.averages_at(nums), context.ensembled(classifiers), labels, test_labels, **options
    )
    metrics: Metrics = {}
    for m, comparison in comparisons.items():
        for kind, score in comparison._asdict().items():
            metrics[f"ensemble/{kind}/M={m}/accuracy"] = float(score.accuracy)
            metrics[f"ensemble/{kind}/M={m}/loss"] = float(score.loss)
        metrics[f"ensemble/ensembling/M={m}/fold"] = float(min(m, fold))
    return metrics


def nearest_neighbours(context: Context) -> Metrics:
    """Weighted cosine kNN on the usual features."""
    if context.is_regression:
        raise NotApplicableError("nearest neighbours vote for classes: this data has none")
    name, features = context.standard
    return knn_metrics(context, features, name)


PROTOCOLS: dict[str, Callable[[Context], Metrics]] = {
    "untransformed": untransformed,
    "average": average,
    "label_fraction": label_fraction,
    "invariance": conditional_variance,
    "alpha": alpha,
    "robustness": robustness,
    "ensemble": ensemble,
    "knn": nearest_neighbours,
    "corruption": corruption,
}

NAMED_ONLY = ("corruption",)
"""Left out of `all`: the test set is encoded 75 times."""


# Running them ----------------------------------------------------------------------------------


def parse(names: str | Sequence[str]) -> list[str]:
    """Checks protocol names; `all` stands for every protocol except those of `NAMED_ONLY`.

    Args:
      names: a list, or one string with commas.
    """
    listed = names.split(",") if isinstance(names, str) else list(names)
    if listed == ["all"]:
        return [name for name in PROTOCOLS if name not in NAMED_ONLY]
    unknown = [name for name in listed if name not in PROTOCOLS]
    if unknown or not listed:
        raise ValueError(
            f"no protocol {', '.join(map(repr, unknown)) or 'was named'}: "
            f"use all, or some of {', '.join(PROTOCOLS)}"
        )
    return listed


def run(
    context: Context, names: Sequence[str], results: Results | None = None
) -> Iterator[tuple[str, Outcome]]:
    """Runs protocols one by one; one that fails does not stop the rest.

    Args:
      context: what to evaluate.
      names: the protocols, see `parse`.
      results: a file that is consulted first and keeps what is measured.

    Yields:
      A protocol's name and its outcome.
    """
    for name in names:
        compute = functools.partial(PROTOCOLS[name], context)
        if results is None:
            yield name, attempt(compute)
        else:
            yield name, results.get_or_attempt(name, context.fingerprint, compute)


def evaluate(
    encoder: Encoder,
    dataset: Dataset,
    protocols: str | Sequence[str] = "all",
    *,
    settings: Settings | None = None,
    progress: bool = False,
) -> Metrics:
    """Measures an encoder on a data set.

    Args:
      encoder: what `load_encoder` returns, or any object with a `transform` and `encode_inputs`.
      dataset: with a test split.
      protocols: names, or `all`; those that do not apply to the data are left out with a warning.
      settings: how to evaluate; None for the paper's settings.
      progress: show a progress bar for every pass over the data, on a terminal.

    Returns:
      Metrics of all protocols by name.
    """
    context = Context(encoder, dataset, settings or Settings(), progress=progress)
    metrics: Metrics = {}
    for name, outcome in run(context, parse(protocols)):
        if outcome.error is not None:
            raise outcome.error
        _log_reason(name, outcome)
        metrics |= outcome.metrics
    return metrics


def periodic(
    protocols: str | Sequence[str], *, seed: int = 0, num_samples: int = 1, limit: int | None = None
) -> Callable[[Encoder, Dataset], Metrics]:
    """A small evaluation for use while training; a protocol that fails is logged and left out.

    Args:
      protocols: names, or `all`.
      seed: of the evaluation's randomness.
      num_samples: M of feature averaging.
      limit: size of the samples of training and test rows; None for all.

    Returns:
      (encoder, data set) -> metrics.
    """
    names = parse(protocols)
    images = 200 if limit is None else min(200, limit)
    settings = Settings(
        seed=seed, num_samples=(num_samples,), num_images=images, num_alphas=20, limit=limit
    )

    def measure(encoder: Encoder, dataset: Dataset) -> Metrics:
        metrics: Metrics = {}
        for name, outcome in run(Context(encoder, dataset, settings), names):
            _log_reason(name, outcome)
            metrics |= outcome.metrics
        return metrics

    return measure


def _log_reason(name: str, outcome: Outcome) -> None:
    if outcome.reason:
        logging.getLogger(__name__).warning("%s: %s: %s", name, outcome.status, outcome.reason)
