"""VICReg (arXiv 2105.04906): equal views, components that vary and do not repeat each other."""

import dataclasses
from typing import ClassVar

from invclr_jax.methods.joint import Joint
from invclr_jax.methods.views import mean_over_pairs
from invclr_jax.objectives.redundancy import vicreg


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class VICReg(Joint):
    """The loss of two views plus the penalty; of more views the mean over pairs.

    Attributes:
      invariance, variance, covariance: weights, see `invclr_jax.objectives.redundancy.vicreg`.
    """

    invariance: float = 25.0
    variance: float = 25.0
    covariance: float = 1.0

    options: ClassVar = {"invariance": 25.0, "variance": 25.0, "covariance": 1.0}
    defaults: ClassVar = Joint.defaults | {"model.projection_dim": (2048, 2048)}

    def compare(self, views):
        """The mean over pairs."""
        weights = (self.invariance, self.variance, self.covariance)
        return mean_over_pairs(lambda a, b: vicreg(a, b, *weights, axis=self.axis), views)
