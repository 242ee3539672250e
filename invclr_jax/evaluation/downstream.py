"""Fits the paper's probe and two others to features, and names what they achieve."""

import jax.numpy as jnp
import numpy as np

from invclr_jax.evaluation import knn, probes
from invclr_jax.evaluation import metrics as scores
from invclr_jax.evaluation.context import Context, Metrics, Pair, labels_of
from invclr_jax.evaluation.selection import choose_l2
from invclr_jax.evaluation.standardise import standardised

SELECTED_GRID = tuple(10.0**power for power in range(-6, 1))
"""Weights from which the selected probe's is chosen; its features have variance 1."""

VALIDATION = 0.1
"""Share of the training rows held out to choose it."""


def fit_probe(
    context: Context, features: np.ndarray, rows: np.ndarray | slice = slice(None)
) -> probes.Classifier | probes.Regressor:
    """The linear model of the paper: softmax regression, or ridge regression for numbers.

    Args:
      context: labels and settings.
      features: of the training rows to fit, `[n, d]`.
      rows: which training rows these are.
    """
    labels = labels_of(context.train)[rows]
    if context.is_regression:
        return probes.fit_regressor(features, labels, l2=context.l2)
    return probes.fit_classifier(features, labels, num_classes=context.num_classes, l2=context.l2)


def probe_metrics(
    probe: probes.Classifier | probes.Regressor,
    context: Context,
    test_features: np.ndarray,
    name: str,
) -> Metrics:
    """What a fitted probe achieves on test features.

    Args:
      probe: the linear model.
      context: labels and settings.
      test_features: of every test row, `[t, d]`.
      name: how the features were made, for the metrics' names.
    """
    if isinstance(probe, probes.Classifier):
        return _classifier_metrics(probe, context, test_features, f"probe/lbfgs/{name}")
    labels = labels_of(context.test)
    errors = np.asarray(scores.squared_error(probe.predict(test_features), labels))
    named = dict(zip(context.target_names, errors, strict=True)) | {"total": errors.sum()}
    return {f"probe/ridge/{name}/mse/{target}": float(e) for target, e in named.items()}


def selected_metrics(context: Context, features: Pair, name: str) -> Metrics:
    """A classifier without the paper's fixed weight decay, whose effect depends on the scale of z.

    Features are standardised, and l2 is chosen on a validation split; nothing for regression.

    Args:
      context: labels and settings.
      features: of training and test rows.
      name: how the features were made, for the metrics' names.
    """
    if context.is_regression:
        return {}
    labels = labels_of(context.train)
    held_out = round(VALIDATION * len(labels))
    train, test = standardised(jnp.asarray(features[0]), jnp.asarray(features[1]), held_out)
    choice = choose_l2(
        train,
        labels,
        num_classes=context.num_classes,
        grid=SELECTED_GRID,
        validation_fraction=VALIDATION,
        seed=context.settings.seed,
    )
    prefix = f"probe/selected/{name}"
    return _classifier_metrics(choice.probe, context, test, prefix) | {f"{prefix}/l2": choice.l2}


def knn_metrics(context: Context, features: Pair, name: str) -> Metrics:
    """Weighted cosine kNN with k = 200 and temperature 0.1; nothing for regression.

    Args:
      context: labels.
      features: of training and test rows.
      name: how the features were made, for the metrics' names.
    """
    if context.is_regression:
        return {}
    k = min(200, len(context.train))
    predicted = knn.knn_predict(
        features[0],
        labels_of(context.train),
        features[1],
        num_classes=context.num_classes,
        k=k,
    )
    return {f"knn/k={k}/{name}/accuracy": scores.accuracy(predicted, labels_of(context.test))}


def _classifier_metrics(probe, context: Context, test_features, prefix: str) -> Metrics:
    labels = labels_of(context.test)
    measured = {
        "accuracy": scores.accuracy(probe.predict(test_features), labels),
        "loss": scores.cross_entropy(probe.scores(test_features), labels),
        "iterations": probe.iterations,
        "grad_norm": probe.grad_norm,
    }
    return {f"{prefix}/{what}": float(value) for what, value in measured.items()}
