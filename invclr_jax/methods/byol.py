"""BYOL (arXiv 2006.07733): predict a slow network's projection of another view; no negatives."""

import dataclasses
from typing import ClassVar

from invclr_jax.methods.momentum import Momentum
from invclr_jax.methods.views import mean_over_directions
from invclr_jax.models import network
from invclr_jax.models.heads import ProjectionHead
from invclr_jax.objectives.siamese import negative_cosine


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class BYOL(Momentum):
    """Σ over both directions of |p/|p| - t/|t||² = 2 - 2 cos(p, t), plus the penalty.

    With more than two views it is twice the mean over all (view, target), the same for two.
    """

    defaults: ClassVar = Momentum.defaults | {"model.projection_dim": (256, 256)}

    @classmethod
    def default_head(cls, encoder, output_dim):
        """Dense 4096, batch norm, ReLU, dense with bias."""
        dtype = getattr(encoder, "dtype", None)
        head = ProjectionHead(output_dim, dtype, hidden=(4096,), normalised=False, bias=True)
        return network.like(head, encoder)

    def compare(self, predictions, targets):
        """2·mean (2 - 2 cos)."""
        return 4 * (1 + mean_over_directions(negative_cosine, predictions, targets))
