"""Accuracy on corrupted test pictures, with probes fitted to clean training pictures."""

import functools
from collections.abc import Callable

import jax
import numpy as np

from invclr_jax.data import Pictures, Split
from invclr_jax.evaluation import features, probes
from invclr_jax.evaluation import metrics as scores
from invclr_jax.evaluation.context import AVERAGE, CORRUPTION, Context, Metrics, labels_of
from invclr_jax.evaluation.downstream import fit_probe
from invclr_jax.evaluation.outcomes import NotApplicableError
from invclr_jax.transforms.base import takes_images
from invclr_jax.transforms.corruptions import NAMES, SEVERITIES, corrupt

MOST_SAMPLES = 10
"""Largest M of averaged features: every corrupted set is encoded M times."""

Source = Callable[[str, int], Split]
"""(corruption, severity) -> pictures and classes."""

Probe = probes.Classifier | probes.Regressor
Encode = Callable[[np.ndarray], np.ndarray]


def corruption(context: Context, source: Source | None = None) -> Metrics:
    """Accuracy by corruption and severity, for plain features and averaged ones.

    Also the accuracy on clean pictures, the mean over all corruptions and severities, the mean over
    severity 5, and the mean relative to clean.

    Args:
      context: an encoder of RGB pictures with classes.
      source: the corrupted test pictures; None to corrupt the test rows with
        `transforms.corruptions`. For the published files of CIFAR-10-C:
        `functools.partial(invclr_jax.data.corrupted.load_corrupted, folder)`.
    """
    _check(context)
    source = source or functools.partial(_corrupted, context)
    kinds = _fitted(context)
    metrics: Metrics = {}
    for kind, (probe, encode) in kinds.items():
        metrics[f"corruption/{kind}/clean/accuracy"] = _accuracy(probe, encode, context.test)
    for name in NAMES:
        for severity in SEVERITIES:
            split = source(name, severity)
            for kind, (probe, encode) in kinds.items():
                found = f"corruption/{kind}/{name}/severity={severity}/accuracy"
                metrics[found] = _accuracy(probe, encode, split)
    for kind in kinds:
        metrics |= _summary(metrics, f"corruption/{kind}")
    return metrics


def _fitted(context: Context) -> dict[str, tuple[Probe, Encode]]:
    """Probes of clean training rows, and how pictures become their features, by name."""
    kinds: dict[str, tuple[Probe, Encode]] = {}

    def plain(images):
        return context.pass_over("corrupted rows", images, None, features.plain_features)

    if not context.always_transformed:
        kinds["untransformed"] = fit_probe(context, context.plain[0]), plain
    nums = context.settings.num_samples
    m = max((num for num in nums if num <= MOST_SAMPLES), default=min(nums))
    key = jax.random.fold_in(context.key(CORRUPTION), 0)
    average = functools.partial(features.average_features, num_samples=m)

    def averaged(images):
        return context.pass_over(f"corrupted rows, average of {m}", images, key, average)

    train, _ = context.averaged(context.transform, (m,), AVERAGE)[m]
    kinds[f"M={m}"] = fit_probe(context, train), averaged
    return kinds


def _corrupted(context: Context, name: str, severity: int) -> Split:
    """The test rows corrupted; pictures keep their random numbers from one severity to the next."""
    key = jax.random.fold_in(context.key(CORRUPTION), 1 + NAMES.index(name))
    images = corrupt(context.test.array, name, severity, key)
    return Split(np.asarray(images), labels_of(context.test))


def _accuracy(probe: Probe, encode: Encode, split: Split) -> float:
    return float(scores.accuracy(probe.predict(encode(split.array)), labels_of(split)))


def _summary(metrics: Metrics, prefix: str) -> Metrics:
    each = {
        severity: np.mean([metrics[f"{prefix}/{n}/severity={severity}/accuracy"] for n in NAMES])
        for severity in SEVERITIES
    }
    mean = float(np.mean(list(each.values())))
    return {
        f"{prefix}/mean/accuracy": mean,
        f"{prefix}/severity=5/accuracy": float(each[5]),
        f"{prefix}/relative": mean / metrics[f"{prefix}/clean/accuracy"],
    }


def _check(context: Context) -> None:
    if context.is_regression:
        raise NotApplicableError("corruptions are measured by accuracy: this data has no classes")
    if isinstance(context.test.images, Pictures):
        raise NotApplicableError(
            "corruptions change a whole test set at once, but this one is streamed: load it into "
            "memory, as folder or arrays"
        )
    if not takes_images(context.transform) or context.test.images.shape[-1] != 3:
        raise NotApplicableError("corruptions are defined for RGB pictures: this data has none")
