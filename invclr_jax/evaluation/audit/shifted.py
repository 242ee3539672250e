"""Consistency of predictions under shifts of whole pixels (as in lie-deriv; Zhang, 1904.11486)."""

import numpy as np
from jaxtyping import Float, Int

from invclr_jax.evaluation.audit import similarity
from invclr_jax.evaluation.audit.deciding import Decide
from invclr_jax.evaluation.audit.subject import Findings, Subject

DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1))


def shift(
    pictures: Float[np.ndarray, "n h w c"], pixels: int, directions: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n h w c"]:
    """Moves pictures by whole pixels; edge pixels are repeated.

    Args:
      pictures: any.
      pixels: how far.
      directions: one of down, up, right, left for each picture: 0 to 3.
    """
    height, width = pictures.shape[1:3]
    moved = np.empty_like(pictures)
    for index, (down, right) in enumerate(DIRECTIONS):
        rows = np.clip(np.arange(height) - down * pixels, 0, height - 1)
        columns = np.clip(np.arange(width) - right * pixels, 0, width - 1)
        chosen = directions == index
        moved[chosen] = pictures[chosen][:, rows][:, :, columns]
    return moved


def measure(subject: Subject, decide: Decide, findings: Findings) -> None:
    """How often the prediction survives a shift, and the cosine to the plain feature.

    Args:
      subject: the encoder and its pictures.
      decide: features -> predictions.
      findings: where they go, as `shift/pixels=3/consistency`.
    """
    pictures = np.asarray(subject.pictures(subject.varied))
    directions = np.arange(len(pictures)) % len(DIRECTIONS)
    clean = subject.clean[: len(pictures)]
    before = decide(clean)
    other = similarity.strangers(len(pictures), subject.settings.seed)
    for pixels in range(min(subject.settings.shifts, min(pictures.shape[1:3]) - 1) + 1):
        views = subject.encoding.of_pictures(shift(pictures, pixels, directions))
        same = (decide(views) == before).astype(float)
        cosine = similarity.cosines(views, clean)
        name = f"shift/pixels={pixels}"
        findings.add(f"{name}/consistency", same.mean(), subject.bootstrap.mean(same))
        findings.add(f"between/{name}/consistency", (before == before[other]).mean())
        findings.add(f"{name}/cosine", cosine.mean(), subject.bootstrap.mean(cosine))
        findings.add(f"between/{name}/cosine", similarity.cosines(views, clean[other]).mean())
