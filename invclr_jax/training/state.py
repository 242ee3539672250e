"""What a run carries from step to step, and what is fixed while it runs."""

import dataclasses
from typing import Any

import flax.struct
import jax
import optax
from jaxtyping import PRNGKeyArray, PyTree

from invclr_jax import parallel
from invclr_jax.methods.base import Method
from invclr_jax.training.online_probe import OnlineProbe


@flax.struct.dataclass
class TrainState:
    """Everything that changes in training; the same on every device.

    Attributes:
      step: updates made so far.
      params: of every module, `{"encoder": ..., "head": ...}`.
      statistics: what modules keep beside parameters, such as batch norm's, same layout.
      opt_state: the optimiser's.
      method: what the method keeps (MoCo: key encoder and queue); empty for SimCLR.
      probe: the online probe's parameters; empty if it is off.
    """

    step: Any
    params: PyTree
    statistics: PyTree
    opt_state: PyTree
    method: PyTree
    probe: PyTree


@dataclasses.dataclass(frozen=True, eq=False)
class Recipe:
    """How a state becomes the next one: the parts of a run that stay as they are.

    Attributes:
      method: modules, transformation, loss and penalty.
      tx: the optimiser.
      image_shape: height, width and channels that the encoder sees.
      seed: what all randomness of the run descends from.
      dtype: of parameters and optimiser: float32 under bfloat16 arithmetic too.
      probe: a linear model trained beside the encoder, None for none.
    """

    method: Method
    tx: optax.GradientTransformation
    image_shape: tuple[int, int, int]
    seed: int = 0
    dtype: str = "float32"
    probe: OnlineProbe | None = None

    @property
    def axis(self) -> parallel.Axis:
        """The mapped device axis."""
        return self.method.axis

    @property
    def key(self) -> PRNGKeyArray:
        """The key that all randomness of the run descends from."""
        return jax.random.key(self.seed)
