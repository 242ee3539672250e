"""Fits the paper's probe to features and names what it achieves."""

import numpy as np

from invclr_jax.evaluation import metrics as scores
from invclr_jax.evaluation import probes
from invclr_jax.evaluation.context import Context, Metrics, labels_of


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
    labels = labels_of(context.test)
    if context.is_regression:
        errors = np.asarray(scores.squared_error(probe.predict(test_features), labels))
        found = {f"mse/{target}": e for target, e in zip(context.target_names, errors, strict=True)}
        return {f"probe/ridge/{name}/{key}": float(e) for key, e in found.items()} | {
            f"probe/ridge/{name}/mse/total": float(errors.sum()),
        }
    logits = probe.scores(test_features)
    found = {
        "accuracy": scores.accuracy(probe.predict(test_features), labels),
        "loss": scores.cross_entropy(logits, labels),
        "iterations": probe.iterations,
        "grad_norm": probe.grad_norm,
    }
    return {f"probe/lbfgs/{name}/{key}": float(value) for key, value in found.items()}
