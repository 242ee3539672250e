"""How much features change when one part of the transformation changes.

V_cond, V_total and their ratio (the paper, Eq. 6 and 7, on unit features), canonical correlations,
cosines, and retrieval: whether a transformed picture finds its original (SIE).
"""

import jax
import numpy as np
from jaxtyping import Float

from invclr_jax.evaluation import invariance
from invclr_jax.evaluation.audit import similarity
from invclr_jax.evaluation.audit.parts import Part, changed
from invclr_jax.evaluation.audit.subject import Findings, Subject
from invclr_jax.objectives.features import unit_rows

PICTURES = 8
"""Pictures for each direction that canonical correlations are measured in."""


def measure(subject: Subject, part: Part, findings: Findings) -> None:
    """All measures of one part.

    Args:
      subject: the encoder and its pictures.
      part: what varies.
      findings: where they go.
    """
    features = repeated(subject, part)
    variances(subject, part.name, features, findings)
    canonical(subject, part.name, features, findings)
    against_clean(subject, part, findings)


def repeated(subject: Subject, part: Part) -> Float[np.ndarray, "n p d"]:
    """Features of pictures under several draws of a part."""
    x, held = subject.varied, subject.key("held")
    keys = jax.random.split(subject.key(part.name), subject.settings.num_draws)
    views = [
        subject.encoding.transformed(part.transform, x, *part.draw(key, len(x), held))
        for key in keys
    ]
    return np.stack(views, axis=1)


def variances(subject: Subject, name: str, features: np.ndarray, findings: Findings) -> None:
    """V_cond, V_total and their ratio."""
    unit = np.asarray(unit_rows(features), np.float64)
    found = invariance.variances(unit.astype(features.dtype))
    within = np.asarray(found.per_image, np.float64)
    second = (unit**2).sum(-1).mean(1)
    total, ratio = subject.bootstrap.ratio(within, second, unit.mean(1))
    findings.add(f"v_cond/{name}", found.conditional, subject.bootstrap.mean(within))
    findings.add(f"v_total/{name}", found.total, total)
    findings.add(f"ratio/{name}", found.ratio, ratio)


def canonical(subject: Subject, name: str, features: np.ndarray, findings: Findings) -> None:
    """Mean canonical correlation of two draws, of the same picture and of different ones.

    With few pictures only the directions in which clean features vary most are looked at: pictures
    cannot vary in more directions than there are of them, and the rest would count as nuisance.
    """
    most = max(1, len(features) // PICTURES)
    if most < features.shape[-1]:
        features = features @ similarity.principal(subject.clean, most)[1]
    other = similarity.strangers(len(features), subject.settings.seed)
    first, second = features[:, :-1], features[:, 1:]

    def mean(a, b):
        rows = (part.reshape(-1, part.shape[-1]) for part in (a, b))
        return invariance.canonical_correlations(*rows).mean()

    findings.add(f"canonical_correlation/{name}", mean(first, second))
    findings.add(f"between/canonical_correlation/{name}", mean(first, second[other]))


def against_clean(subject: Subject, part: Part, findings: Findings) -> None:
    """Cosines to the plain picture's feature, and whether it is found among all plain ones."""
    x = subject.x[: subject.settings.retrieved_images]
    drawn = changed(part, subject.key(part.name, 1), len(x), subject.key("held"))
    views, clean = subject.encoding.transformed(part.transform, x, *drawn), subject.clean[: len(x)]
    other = similarity.strangers(len(views), subject.settings.seed)
    whiten = similarity.whitening(subject.clean)
    pairs = {
        "cosine": (views, clean),
        "whitened_cosine": (whiten(views), whiten(clean)),
    }
    for measure_name, (a, b) in pairs.items():
        for prefix, rows in (("", b), ("between/", b[other])):
            found = similarity.cosines(a, rows)
            name = f"{prefix}{measure_name}/{part.name}"
            findings.add(name, found.mean(), subject.bootstrap.mean(found))
    ranks = similarity.reciprocal_ranks(views, clean)
    chance = 1 / np.arange(1, len(ranks) + 1)
    for name, found, by_chance in (
        ("retrieval/mrr", ranks, chance.mean()),
        ("retrieval/hits_at_1", (ranks == 1).astype(float), 1 / len(ranks)),
    ):
        findings.add(f"{name}/{part.name}", found.mean(), subject.bootstrap.mean(found))
        findings.add(f"between/{name}/{part.name}", by_chance)
