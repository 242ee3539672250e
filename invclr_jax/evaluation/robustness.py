"""Test-time shifts of the transformation (Fig. 4 and the appendix's grids).

Each shift is measured twice: `refitted`, the probe fitted to features under the shift (as the
authors do), and `kept`, the probe fitted in the training regime.
"""

import dataclasses
from collections.abc import Mapping

from invclr_jax.evaluation.context import SHIFT, Context, Metrics
from invclr_jax.evaluation.downstream import fit_probe, probe_metrics
from invclr_jax.transforms.base import Transform
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.spirograph import SpirographTransform

STRENGTHS = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
BACKGROUND = ("b_r", "b_g", "b_b")


def shifts(transform: Transform) -> tuple[Transform, Mapping[str, Transform]]:
    """The training regime and the shifted transformations, by name."""
    if isinstance(transform, SpirographTransform):
        shifted = {
            f"h_shift={s:+g}": transform.shifted(s, ("h",)) for s in _mirrored(0.1, 0.3, 0.5)
        }
        shifted |= {f"h_widen={s:g}": transform.widened(s, ("h",)) for s in (0.1, 0.3, 0.5)}
        for s in (0.1, 0.2, 0.3, 0.4):
            shifted[f"background_shift={s:g}"] = transform.shifted(s, BACKGROUND)
            shifted[f"background_widen={s:g}"] = transform.widened(s, BACKGROUND)
        return transform, shifted
    if isinstance(transform, ImageTransform):
        # As the authors: colour alone, always, without crop, flip and grey.
        colour = dataclasses.replace(
            transform, crop=False, flip=False, grey_probability=0.0, jitter_probability=1.0
        )
        return colour, {
            f"strength={s:g}": dataclasses.replace(colour, strength=s) for s in STRENGTHS
        }
    raise ValueError(
        f"robustness knows no shifts of {type(transform).__name__}: evaluate your own shifted "
        "transforms with invclr_jax.evaluation.features"
    )


def _mirrored(*sizes: float) -> tuple[float, ...]:
    return tuple(sorted([-size for size in sizes] + list(sizes)))


def robustness(context: Context) -> Metrics:
    """The probe's score under each shift, one random transformation per input."""
    regime, shifted = shifts(context.transform)
    train, test = context.drawn_from(regime, SHIFT)
    kept = fit_probe(context, train)
    metrics = probe_metrics(kept, context, test, "robustness/no_shift")
    for name, transform in shifted.items():
        train, test = context.drawn_from(transform, SHIFT)
        metrics |= probe_metrics(kept, context, test, f"robustness/{name}/kept")
        refitted = fit_probe(context, train)
        metrics |= probe_metrics(refitted, context, test, f"robustness/{name}/refitted")
    return metrics
