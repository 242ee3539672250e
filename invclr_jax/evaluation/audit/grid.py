"""Whitened cosine to the plain feature along each parameter (ssl-invariances)."""

import jax
import jax.numpy as jnp
import numpy as np

from invclr_jax.evaluation.audit import similarity
from invclr_jax.evaluation.audit.parts import Part
from invclr_jax.evaluation.audit.subject import Findings, Subject

NAME = "along"


def points(part: Part, number: int) -> np.ndarray:
    """Values of a component of alpha: the 1st to the 99th percentile of its distribution."""
    draws = np.asarray(part.transform.alpha.sample(jax.random.key(0), 10_000))[:, part.column]
    low, high = np.percentile(draws, [1, 99])
    return np.linspace(low, high, number)


def measure(subject: Subject, part: Part, findings: Findings) -> None:
    """The mean whitened cosine at each point, to the same and to a different picture.

    Args:
      subject: the encoder and its pictures.
      part: a component of alpha.
      findings: where they go, as `along/angle=0.1/whitened_cosine`.
    """
    x = subject.varied
    whiten = similarity.whitening(subject.clean)
    clean = whiten(subject.clean[: len(x)])
    other = similarity.strangers(len(x), subject.settings.seed)
    for value in points(part, subject.settings.grid):
        drawn = part.at(jnp.full(len(x), value), subject.key("held"))
        views = whiten(subject.encoding.transformed(part.transform, x, *drawn))
        for prefix, rows in (("", clean), ("between/", clean[other])):
            found = similarity.cosines(views, rows)
            name = f"{prefix}{NAME}/{part.name}={value:.4g}/whitened_cosine"
            findings.add(name, found.mean(), subject.bootstrap.mean(found))
