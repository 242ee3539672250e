"""Everything the paper measures, by name: each protocol turns a context into named numbers.

A metric's name says how it was made: `probe/lbfgs/untransformed/accuracy`,
`probe/ridge/M=40/mse/m`, `knn/k=200/accuracy`.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ml_collections
import numpy as np

from invclr_jax.checkpoint import Encoder
from invclr_jax.data import Dataset, fraction_indices
from invclr_jax.evaluation import features, invariance, knn
from invclr_jax.evaluation.context import (
    ALPHA,
    CONDITIONAL,
    Context,
    Metrics,
    Settings,
    labels_of,
)
from invclr_jax.evaluation.downstream import fit_probe, probe_metrics
from invclr_jax.evaluation.ensemble import compare
from invclr_jax.evaluation.results import Results
from invclr_jax.evaluation.robustness import robustness


class NotApplicableError(ValueError):
    """A protocol that makes no sense for this data."""


def untransformed(context: Context) -> Metrics:
    """The probe on features of plain inputs, the usual protocol."""
    if context.always_transformed:
        raise NotApplicableError(
            "this data has no untransformed version: every picture is drawn with some alpha; ask "
            "for the protocol average"
        )
    train, test = context.plain
    return probe_metrics(fit_probe(context, train), context, test, "untransformed")


def average(context: Context) -> Metrics:
    """The probe on features averaged over M transformations, for each M (Fig. 5)."""
    metrics: Metrics = {}
    for m, (train, test) in context.averages.items():
        metrics |= probe_metrics(fit_probe(context, train), context, test, f"M={m}")
    return metrics


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

    beta is one draw an image and stays fixed while alpha varies.
    """
    settings = context.settings
    found = features.conditional_features(
        context.encoder.encode_inputs,
        context.transform,
        context.test.images[: settings.num_images],
        context.key(CONDITIONAL),
        settings.num_alphas,
        batch_size=settings.batch_size,
    )
    unit = invariance.unit(found)
    variances = invariance.variances(unit)
    pairs = (part.reshape(-1, part.shape[-1]) for part in (found[:, :-1], found[:, 1:]))
    return {
        "invariance/conditional_variance": float(variances.conditional),
        "invariance/total_variance": float(variances.total),
        "invariance/ratio": float(variances.ratio),
        "invariance/as_published": float(invariance.as_published(unit)),
        "invariance/effective_rank": float(invariance.effective_rank(unit[:, 0])),
        "invariance/canonical_correlation": float(invariance.canonical_correlations(*pairs).mean()),
        "invariance/mean_norm": float(np.linalg.norm(found, axis=-1).mean()),
    }


def alpha(context: Context) -> Metrics:
    """How well alpha is predicted from z by linear regression (Table 1), per component.

    The reference is what a constant achieves: the variance of alpha.
    """
    (train, train_alpha), (test, test_alpha) = context.with_alpha(ALPHA)
    metrics: Metrics = {}
    for name, method in (("ridge", "closed_form"), ("lbfgs", "lbfgs")):
        found = invariance.predict_alpha(
            train, train_alpha, test, test_alpha, seed=context.settings.seed, method=method
        )
        metrics |= _per_component(context, f"alpha/{name}/mse", found.mse)
        metrics |= _per_component(context, "alpha/reference", found.reference)
    return metrics


def _per_component(context: Context, name: str, values: np.ndarray) -> Metrics:
    named = zip(context.alpha_names, values, strict=True)
    mean = {f"{name}/mean": float(np.mean(values))}
    return mean | {f"{name}/{component}": float(value) for component, value in named}


def ensemble(context: Context) -> Metrics:
    """Feature averaging beside averaging the probabilities of a probe on augmented features."""
    if context.is_regression:
        raise NotApplicableError("ensembling averages class probabilities: this data has none")
    nums = [m for m in context.settings.num_samples if m <= context.settings.ensemble_samples]
    train, test = context.samples(max(nums))
    found = compare(
        train,
        labels_of(context.train),
        test,
        labels_of(context.test),
        num_classes=context.num_classes,
        l2=context.l2,
        nums=nums,
    )
    metrics: Metrics = {}
    for m, scores in found.items():
        for kind, score in scores._asdict().items():
            metrics[f"ensemble/{kind}/M={m}/accuracy"] = float(score.accuracy)
            metrics[f"ensemble/{kind}/M={m}/loss"] = float(score.loss)
    return metrics


def nearest_neighbours(context: Context) -> Metrics:
    """Weighted cosine kNN with k = 200 and temperature 0.1."""
    if context.is_regression:
        raise NotApplicableError("kNN votes for classes: this data has none")
    name, (train, test) = context.standard
    k = min(200, len(train))
    predicted = knn.knn_predict(
        train,
        labels_of(context.train),
        test,
        num_classes=context.num_classes,
        k=k,
    )
    accuracy = 100 * np.mean(np.asarray(predicted) == labels_of(context.test))
    return {f"knn/k={k}/{name}/accuracy": float(accuracy)}


PROTOCOLS: dict[str, Callable[[Context], Metrics]] = {
    "untransformed": untransformed,
    "average": average,
    "label_fraction": label_fraction,
    "invariance": conditional_variance,
    "alpha": alpha,
    "robustness": robustness,
    "ensemble": ensemble,
    "knn": nearest_neighbours,
}


def parse(names: list[str]) -> list[str]:
    """Checks protocol names; `all` stands for every one of them."""
    if names == ["all"]:
        return list(PROTOCOLS)
    unknown = [name for name in names if name not in PROTOCOLS]
    if unknown or not names:
        raise ValueError(
            f"no protocol {', '.join(map(repr, unknown)) or 'was named'}: "
            f"use all, or some of {', '.join(PROTOCOLS)}"
        )
    return names


def periodic(config: ml_collections.ConfigDict) -> Callable[[Encoder, Dataset], Metrics]:
    """What `config.eval` asks for, as the function that the training loop calls."""
    names = parse(config.eval.protocol.split(","))
    settings = Settings(
        seed=config.seed,
        num_samples=(config.eval.num_samples,),
        num_images=min(200, config.eval.limit),
        num_alphas=20,
        limit=config.eval.limit,
    )

    def run(encoder: Encoder, dataset: Dataset) -> Metrics:
        context = Context(encoder, dataset, settings)
        return {k: v for name in names for k, v in PROTOCOLS[name](context).items()}

    return run


def evaluate(
    context: Context, names: list[str], results: Results, options: Mapping[str, Any]
) -> Iterator[tuple[str, Metrics | str]]:
    """Runs protocols one by one, from the result file where they are in it already.

    Args:
      context: what to evaluate.
      names: the protocols, see `parse`.
      results: the file.
      options: the settings, kept in the file beside the metrics.

    Yields:
      A protocol's name and its metrics, or a sentence if it makes no sense for this data.
    """
    for name in names:
        try:
            compute = functools.partial(PROTOCOLS[name], context)
            yield name, results.get_or_compute(name, options, compute)
        except NotApplicableError as reason:
            yield name, f"  not applicable: {reason}"
