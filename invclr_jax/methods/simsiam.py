"""SimSiam (arXiv 2011.10566): BYOL without a slow network; stopping the gradient is enough."""

import dataclasses
from typing import ClassVar

from invclr_jax.methods.predicting import Predicting
from invclr_jax.methods.views import mean_over_directions
from invclr_jax.models import network
from invclr_jax.models.heads import ProjectionHead
from invclr_jax.objectives.siamese import negative_cosine


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SimSiam(Predicting):
    """The mean over both directions of -cos(p, stop_gradient(z)), plus the penalty."""

    options: ClassVar = {"predictor_hidden": 512}
    defaults: ClassVar = Predicting.defaults | {"model.projection_dim": (2048, 2048)}

    @classmethod
    def default_head(cls, encoder, output_dim):
        """Three dense layers of the projection's length, each with batch norm."""
        dtype = getattr(encoder, "dtype", None)
        head = ProjectionHead(output_dim, dtype, hidden=(output_dim, output_dim))
        return network.like(head, encoder)

    @classmethod
    def from_config(cls, config, **parts):
        """Reads `config.simsiam`."""
        hidden = cls.section(config)["predictor_hidden"]
        return cls(**{"predictor": cls.default_predictor(hidden, parts["encoder"]), **parts})

    def targets(self, params, state, x, draws, projected, *, step, key):
        """The trained network's own projections of the first two views."""
        return (projected[0], projected[1]), state

    def compare(self, predictions, targets):
        """-mean cos."""
        return mean_over_directions(negative_cosine, predictions, targets)
