"""Accuracy of the clean probe on corrupted pictures (Hendrycks and Dietterich, 1903.12261)."""

import numpy as np

from invclr_jax.evaluation.audit.deciding import Probe
from invclr_jax.evaluation.audit.subject import Findings, Subject
from invclr_jax.transforms.corruptions import NAMES, corrupt


def measure(subject: Subject, probe: Probe, findings: Findings) -> None:
    """Accuracy on clean pictures, on each corruption and severity, and the mean of the latter.

    Args:
      subject: the encoder and its pictures, RGB.
      probe: fitted to clean features; the pictures it was not fitted to are corrupted.
      findings: where they go, as `corruption/fog/severity=3/accuracy`, in percent.
    """
    rows = probe.test[: subject.settings.varied_images]
    pictures = np.asarray(subject.pictures(subject.x[rows]))
    right = _right(subject, probe, subject.clean[rows], rows)
    findings.add("probe/clean/accuracy", 100 * right.mean(), _percent(subject, right))
    every = []
    for index, name in enumerate(NAMES):
        for severity in subject.settings.severities:
            key = subject.key("corruption", index)
            changed = np.asarray(corrupt(pictures, name, severity, key), np.float32)
            right = _right(subject, probe, subject.encoding.of_pictures(changed), rows)
            every.append(right)
            metric = f"corruption/{name}/severity={severity}/accuracy"
            findings.add(metric, 100 * right.mean(), _percent(subject, right))
    right = np.mean(every, axis=0)
    findings.add("corruption/mean/accuracy", 100 * right.mean(), _percent(subject, right))


def _right(subject: Subject, probe: Probe, z: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return (probe.decide(z) == np.asarray(subject.labels)[rows]).astype(float)


def _percent(subject: Subject, right: np.ndarray) -> tuple[float, float]:
    low, high = subject.bootstrap.mean(right)
    return 100 * low, 100 * high
