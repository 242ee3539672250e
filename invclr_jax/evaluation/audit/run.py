"""`audit`: measures how invariant any encoder is, and to what."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from invclr_jax.evaluation.audit import (
    corrupted,
    deciding,
    grid,
    lie,
    reading,
    shifted,
    variation,
)
from invclr_jax.evaluation.audit.encoding import Encoding
from invclr_jax.evaluation.audit.parts import components, parts
from invclr_jax.evaluation.audit.report import Report
from invclr_jax.evaluation.audit.settings import QUICK, AuditSettings
from invclr_jax.evaluation.audit.subject import Findings, Subject
from invclr_jax.transforms.base import Transform, takes_images
from invclr_jax.transforms.normalise import without_normalisation
from invclr_jax.version import __version__

Images = Any
"""uint8 or floats in [0, 1], `[n, h, w, channels]`; or factors that the transform draws."""


def audit(
    encode: Callable[[Any], Any] | Any,
    images: Images,
    transform: Transform,
    labels: Any = None,
    *,
    settings: AuditSettings | None = None,
    quick: bool = False,
    name: str = "encoder",
    progress: Callable[[str], Any] | None = None,
) -> Report:
    """Measures how invariant an encoder is to each part of a transformation.

    Args:
      encode: a function from pictures `[n, h, w, channels]`, floats in [0, 1], to features
        `[n, d]`, for any n, that normalises its pictures itself; JAX, or plain Python with NumPy
        arrays. Or an object with such a method `encode`, as `load_encoder` returns.
      images: uint8, or floats in [0, 1], `[n, h, w, channels]`.
      transform: what to be invariant to. If it normalises pictures, that part is left out.
      labels: classes `[n]`; with them predictions are those of a linear probe, and corruptions are
        measured.
      settings: how thorough; None for the defaults, or for the quick ones.
      quick: fewer pictures and draws.
      name: of the encoder in the report.
      progress: callback with the name of each measure as it starts.

    Returns:
      The report: `.metrics`, `.to_html(path)`, `.to_json(path)`; it prints as a table.
    """
    settings = settings or (QUICK if quick else AuditSettings())
    subject = _subject(encode, images, transform, labels, settings)
    findings, tell = Findings(), progress or (lambda _: None)
    picture = _example(subject).shape[1:]
    varied = parts(subject.transform, picture)
    for part in varied:
        tell(part.name)
        variation.measure(subject, part, findings)
    tell("reading alpha")
    reading.measure(subject, findings)
    for part in components(subject.transform):
        tell(f"along {part.name}")
        grid.measure(subject, part, findings)
        lie.measure(subject, part, findings)
    if takes_images(subject.transform):
        _predictions(subject, findings, tell, rgb=picture[-1] == 3)
    return Report(
        name,
        findings.metrics,
        findings.intervals,
        tuple(part.name for part in varied),
        _about(subject),
        _strips(subject),
    )


def _predictions(subject: Subject, findings: Findings, tell: Callable, *, rgb: bool) -> None:
    tell("shifts")
    if subject.labels is None:
        shifted.measure(subject, deciding.nearest(subject), findings)
        return
    probe = deciding.probe(subject)
    shifted.measure(subject, probe.decide, findings)
    if rgb:
        tell("corruptions")
        corrupted.measure(subject, probe, findings)


def _subject(encode, images, transform, labels, settings: AuditSettings) -> Subject:
    function = encode if callable(encode) else getattr(encode, "encode", None)
    if not callable(function) or isinstance(encode, str):
        raise ValueError(
            f"encode is a {type(encode).__name__}: give a function images -> features [n, d]"
        )
    if not isinstance(transform, Transform):
        raise ValueError(
            f"transform is a {type(transform).__name__}: it needs alpha, sample, apply and "
            "untransformed"
        )
    x = check_images(images, factors=not takes_images(transform))
    if labels is not None:
        labels = _check_labels(labels, len(x))
    # In random order: the first rows of a sorted data set would be one class.
    rows = np.random.default_rng(settings.seed).permutation(len(x))[: settings.num_images]
    transform = without_normalisation(transform)
    alpha, beta = transform.sample(jax.random.key(0), 2)
    example = transform.apply(jnp.asarray(x[rows[:2]]), alpha, beta)
    encoding = Encoding(function, example, settings.batch_size)
    labels = None if labels is None else labels[rows]
    subject = Subject(encoding, x[rows], transform, labels, settings)
    _check_batches(subject)
    return subject


def check_images(images: Images, *, factors: bool = False) -> np.ndarray:
    """The pictures as an array, or a ValueError if an audit cannot use them.

    Args:
      images: any.
      factors: whether rows of numbers are expected, for transforms that draw pictures of them.
    """
    x = np.asarray(images)
    if x.ndim != (2 if factors else 4):
        expected = "factors [n, number]" if factors else "[n, height, width, channels]"
        raise ValueError(f"images have shape {x.shape}: expected {expected}")
    if len(x) < 20:
        raise ValueError(f"an audit of {len(x)} images says nothing: give at least 20")
    if x.dtype == np.uint8:
        return x
    if x.dtype.kind != "f":
        raise ValueError(f"images are {x.dtype}: give uint8, or floats in [0, 1]")
    if not np.isfinite(x).all():
        raise ValueError("images hold NaN or infinite pixels: leave those pictures out")
    if not factors and (x.min() < 0 or x.max() > 1):
        raise ValueError(
            f"images run from {x.min():.3g} to {x.max():.3g}, outside [0, 1]: give them before "
            "normalisation, the encoder does that itself"
        )
    return x.astype(np.float32)


def _check_labels(labels: Any, n: int) -> np.ndarray:
    labels = np.asarray(labels)
    if labels.shape != (n,) or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ValueError(
            f"labels are {labels.dtype} of shape {labels.shape}: give one class for each of the "
            f"{n} images, integers from 0"
        )
    return labels.astype(np.int32)


def _check_batches(subject: Subject) -> None:
    """Refuses functions whose features of a picture depend on the rest of the batch."""
    pictures = np.asarray(_example(subject, 4))
    together, alone = subject.encoding.encode(pictures), subject.encoding.encode(pictures[:2])
    if np.isnan(together).any():
        raise ValueError("encode returned NaN: check the encoder; an audit would be meaningless")
    scale = np.abs(together).max()
    if np.abs(together[:2] - alone).max() > 1e-2 * scale:
        raise ValueError(
            "encode gives a picture different features in batches of 2 and of 4: use it in "
            "evaluation mode, without batch statistics or dropout"
        )


def _example(subject: Subject, n: int = 1):
    alpha, beta = subject.transform.sample(jax.random.key(0), n)
    return subject.transform.apply(jnp.asarray(subject.x[:n]), alpha, beta)


def _strips(subject: Subject) -> dict[str, np.ndarray]:
    """One picture along each component of alpha."""
    strips = {}
    for part in components(subject.transform):
        values = jnp.asarray(grid.points(part, subject.settings.grid), jnp.float32)
        x = np.repeat(subject.x[:1], len(values), axis=0)
        strip = part.transform.apply(jnp.asarray(x), *part.at(values, subject.key("held")))
        strips[part.name] = np.clip(np.asarray(strip), 0, 1)
    return strips


def _about(subject: Subject) -> dict[str, Any]:
    return {
        "images": len(subject.x),
        "features": int(subject.clean.shape[1]),
        "labels": subject.labels is not None,
        "transform": repr(subject.transform),
        "confidence": subject.settings.confidence,
        "settings": dataclasses.asdict(subject.settings),
        "version": __version__,
    }
