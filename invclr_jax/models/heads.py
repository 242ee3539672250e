"""Projection heads g: representations [n, d] -> projections that the contrastive loss compares.

Under bfloat16 arithmetic the last layer is in float32: a projection is not rounded before the loss.
"""

from typing import Any

import flax.linen as nn
import numpy as np
from jaxtyping import Array, Float

from invclr_jax import parallel
from invclr_jax.models.dtypes import at_least_float32
from invclr_jax.models.norm import BatchNorm

Representations = Float[Array | np.ndarray, "n d"]

# U(-1/√fan_in, 1/√fan_in), PyTorch's default for dense layers and hence the authors'.
torch_uniform = nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")


class ProjectionHead(nn.Module):
    """The authors' head: dense, batch norm, ReLU, dense, batch norm without affine; no biases.

    Apply it to the two views apart, as they do: their batch statistics are not mixed.

    Attributes:
      output_dim: length of a projection; the hidden layer is as wide as the representation.
      dtype, axis, groups, unbiased: as of `invclr_jax.models.resnet.ResNet`.
    """

    output_dim: int = 128
    dtype: Any = None
    axis: parallel.Axis = None
    groups: int = 1
    unbiased: bool = False

    @nn.compact
    def __call__(self, z: Representations, train: bool = False) -> Float[Array, "n p"]:
        """Projects representations; `train` uses and updates batch statistics."""
        spread = (self.axis, self.groups, self.unbiased)
        hidden = _dense(z.shape[-1], self.dtype, False, "dense1")(z)
        hidden = nn.relu(BatchNorm(*spread, dtype=self.dtype, name="bn1")(hidden, train))
        output = _dense(self.output_dim, at_least_float32(self.dtype), False, "dense2")(hidden)
        return BatchNorm(*spread, affine=False, name="bn2")(output, train)


class MoCoHead(nn.Module):
    """MoCo v2's head: dense, ReLU, dense, with biases and without batch norm.

    Attributes:
      output_dim: length of a projection; the hidden layer is as wide as the representation.
      dtype: as of `invclr_jax.models.resnet.ResNet`.
    """

    output_dim: int = 128
    dtype: Any = None

    @nn.compact
    def __call__(self, z: Representations, train: bool = False) -> Float[Array, "n p"]:
        """Projects representations; `train` makes no difference."""
        del train
        hidden = nn.relu(_dense(z.shape[-1], self.dtype, True, "dense1")(z))
        return _dense(self.output_dim, at_least_float32(self.dtype), True, "dense2")(hidden)


def _dense(features: int, dtype: Any, use_bias: bool, name: str) -> nn.Dense:
    return nn.Dense(
        features,
        use_bias=use_bias,
        dtype=dtype,
        param_dtype=at_least_float32(dtype),
        kernel_init=torch_uniform,
        name=name,
    )
