"""EMP-SSL (arXiv 2304.03977): many patches of an image agree with their mean, images spread out.

Features are meant to be averaged over many patches: `evaluate --protocol=average`.
"""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp

from invclr_jax.methods.joint import Joint
from invclr_jax.models import network
from invclr_jax.models.heads import ProjectionHead
from invclr_jax.objectives.coding_rate import emp


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class EMP(Joint):
    """The negative total coding rate and similarity of all views, plus the penalty.

    Attributes:
      eps: squared error up to which projections are coded.
      similarity: weight of the views' agreement.
    """

    eps: float = 0.2
    similarity: float = 200.0

    options: ClassVar = {"eps": 0.2, "similarity": 200.0}
    defaults: ClassVar = Joint.defaults | {
        "model.projection_dim": (1024, 1024),
        "views.number": (20, 20),
        "num_epochs": (30, 30),
    }

    @classmethod
    def default_head(cls, encoder, output_dim):
        """Dense 4096, batch norm, ReLU, dense."""
        dtype = getattr(encoder, "dtype", None)
        return network.like(
            ProjectionHead(output_dim, dtype, hidden=(4096,), normalised=False), encoder
        )

    def compare(self, views):
        """Of all views at once."""
        return emp(jnp.stack(views, axis=1), self.eps, self.similarity, axis=self.axis)
