"""Barlow Twins (arXiv 2103.03230): the views' cross-correlation is the identity."""

import dataclasses
from typing import ClassVar

from invclr_jax.methods.joint import Joint
from invclr_jax.methods.views import mean_over_pairs
from invclr_jax.objectives.redundancy import barlow_twins


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class BarlowTwins(Joint):
    """The loss of two views, times `scale`, plus the penalty; of more views the mean over pairs.

    Attributes:
      off_diagonal: weight of the components' redundancy.
      scale: of the loss, which is a sum over components; solo-learn takes 0.1 on CIFAR.
    """

    off_diagonal: float = 5e-3
    scale: float = 0.1

    options: ClassVar = {"off_diagonal": 5e-3, "scale": 0.1}
    defaults: ClassVar = Joint.defaults | {"model.projection_dim": (2048, 2048)}

    def compare(self, views):
        """`scale` times the mean over pairs."""

        def loss(a, b):
            return barlow_twins(a, b, self.off_diagonal, axis=self.axis)

        return self.scale * mean_over_pairs(loss, views)
