"""MoCo v3 (arXiv 2104.02057): contrast predictions with a slow network's batch; no queue."""

import dataclasses
from typing import ClassVar

from invclr_jax.methods.momentum import Momentum
from invclr_jax.methods.views import mean_over_directions
from invclr_jax.models import network
from invclr_jax.models.heads import ProjectionHead
from invclr_jax.objectives.contrastive import info_nce


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class MoCoV3(Momentum):
    """2 τ Σ over both directions of InfoNCE, plus the penalty.

    With more than two views the sum is twice the mean over all (view, target).

    Attributes:
      temperature: the divisor tau of the cosine similarity.
    """

    temperature: float = 0.2

    defaults: ClassVar = Momentum.defaults | {
        "contrastive.temperature": (0.2, 0.2),
        "model.projection_dim": (256, 256),
    }

    @classmethod
    def default_head(cls, encoder, output_dim):
        """Dense 4096, batch norm, ReLU, dense, batch norm without affine."""
        head = ProjectionHead(output_dim, getattr(encoder, "dtype", None), hidden=(4096,))
        return network.like(head, encoder)

    @classmethod
    def settings(cls, config):
        """Reads `config.contrastive.temperature`."""
        return {"temperature": config.contrastive.temperature}

    def compare(self, predictions, targets):
        """Each prediction finds its target among the whole batch's."""

        def contrast(prediction, target):
            return info_nce(prediction, target, self.temperature, axis=self.axis)

        return 4 * self.temperature * mean_over_directions(contrast, predictions, targets)
