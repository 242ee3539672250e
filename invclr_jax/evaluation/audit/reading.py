"""What features reveal about the transformation: R² of alpha, and of alpha - alpha' from a pair.

Linear (the paper; SIE) and by a small network (SIE): what a linear model cannot read may still be
there. The difference from a pair of features is AugSelf's target.
"""

import numpy as np
from jaxtyping import Float

from invclr_jax.evaluation.alpha import predict_alpha
from invclr_jax.evaluation.audit.parts import components
from invclr_jax.evaluation.audit.perceptron import predict_by_mlp
from invclr_jax.evaluation.audit.subject import Findings, Subject

TEST_SHARE = 3
"""One picture in this many is held out for testing."""


def measure(subject: Subject, findings: Findings) -> None:
    """R² of each component of alpha that varies.

    Args:
      subject: the encoder and its pictures.
      findings: where they go.
    """
    columns = np.array([part.column for part in components(subject.transform)], int)
    names = [part.name for part in components(subject.transform)]
    if not names:
        return
    drawn = [subject.transform.sample(subject.key("reading", i), len(subject.x)) for i in range(2)]
    z, z_prime = (subject.encoding.transformed(subject.transform, subject.x, *d) for d in drawn)
    alpha, alpha_prime = (np.asarray(d[0])[:, columns] for d in drawn)
    questions = {
        "alpha": (z, alpha),
        "difference": (np.concatenate([z, z_prime], axis=1), alpha - alpha_prime),
    }
    for question, (features, targets) in questions.items():
        for how, errors in _errors(features, targets, subject.settings.seed).items():
            for j, name in enumerate(names):
                interval = subject.bootstrap.share(errors[0][:, j], errors[1][:, j], missing=True)
                value = 1 - errors[0][:, j].sum() / errors[1][:, j].sum()
                findings.add(f"{question}/{how}/r2/{name}", value, interval)


def _errors(
    features: Float[np.ndarray, "n d"], targets: Float[np.ndarray, "n a"], seed: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Squared errors of each held-out row, and those of the constant, by kind of model."""
    test = np.arange(len(features)) % TEST_SHARE == 0
    train, held_out = features[~test], features[test]
    constant = (targets[test] - targets[~test].mean(0)) ** 2
    linear = predict_alpha(train, targets[~test], held_out, targets[test], seed=seed).predictions
    mlp = predict_by_mlp(train, targets[~test], held_out, seed=seed)
    return {
        how: (np.asarray((predictions - targets[test]) ** 2, np.float64), constant)
        for how, predictions in (("linear", linear), ("mlp", mlp))
    }
