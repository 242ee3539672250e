"""Test-time shifts of the transformation (Fig. 4 and the appendix's grids).

Each shift is measured twice: `refitted`, the probe fitted to features under the shift (as the
authors do), and `kept`, the probe fitted in the training regime. The
transform defines which shifts there are.
"""

from invclr_jax.evaluation.context import SHIFT, Context, Metrics
from invclr_jax.evaluation.downstream import fit_probe, probe_metrics
from invclr_jax.transforms.base import shifts


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
