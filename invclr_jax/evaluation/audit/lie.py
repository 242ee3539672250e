"""Lie derivatives: how fast features move as a parameter moves (Gruver et al., arXiv 2210.02984).

Their paper takes the mean square of the derivative, their end-to-end code its mean absolute value;
both are given, for a step of one standard deviation of the parameter, so that parameters can be
compared. `relative` is the squared length over the variance of the clean features: a number that
the scale of the features does not change.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.evaluation.audit.encoding import Encoding
from invclr_jax.evaluation.audit.parts import Part
from invclr_jax.evaluation.audit.subject import Findings, Subject

STEP = 0.05
"""Half of the finite difference, in standard deviations, if there is no derivative."""


def measure(subject: Subject, part: Part, findings: Findings) -> None:
    """Both forms of a component's Lie derivative, and the relative one.

    Args:
      subject: the encoder and its pictures.
      part: a component of alpha.
      findings: where they go.
    """
    x, held = subject.varied, subject.key("held")
    alpha, beta = part.draw(subject.key(part.name, 2), len(x), held)
    moved = derivative(subject.encoding, part, x, alpha, beta)
    spread = np.var(subject.clean, axis=0, dtype=np.float64).sum()
    squares = (moved**2).mean(1)
    forms = {
        "mean_square": squares,
        "mean_absolute": np.abs(moved).mean(1),
        "relative": squares * moved.shape[1] / spread,
    }
    for form, rows in forms.items():
        findings.add(f"lie/{part.name}/{form}", rows.mean(), subject.bootstrap.mean(rows))


def derivative(
    encoding: Encoding, part: Part, x: np.ndarray, alpha: Array, beta: Any
) -> Float[np.ndarray, "n d"]:
    """dz/dalpha_j times the standard deviation of alpha_j: one JVP, or a central difference.

    Args:
      encoding: the encoder.
      part: component j.
      x: pictures.
      alpha: where the derivative is taken, `[n, a]`.
      beta: of each picture.
    """
    deviation = float(np.sqrt(part.transform.alpha.variance[part.column]))
    direction = jnp.zeros_like(alpha).at[:, part.column].set(deviation)
    if not encoding.is_traced:
        ends = (
            encoding.transformed(part.transform, x, alpha + sign * STEP * direction, beta)
            for sign in (1, -1)
        )
        ahead, behind = (np.asarray(z, np.float64) for z in ends)
        return (ahead - behind) / (2 * STEP)
    size = min(encoding.batch_size, len(x))
    moved = []
    for start in range(0, len(x), size):
        rows = np.minimum(np.arange(start, start + size), len(x) - 1)
        a, b, v = jax.tree.map(lambda leaf, rows=rows: leaf[rows], (alpha, beta, direction))
        found = _jvp(x[rows], a, b, v, apply=part.transform.apply, encode=encoding.function)
        moved.append(np.asarray(found, np.float64)[: min(size, len(x) - start)])
    return np.concatenate(moved)


@functools.partial(jax.jit, static_argnames=("apply", "encode"))
def _jvp(x, alpha, beta, direction, *, apply: Callable, encode: Callable) -> Array:
    return jax.jvp(lambda a: encode(apply(x, a, beta)), (alpha,), (direction,))[1]
