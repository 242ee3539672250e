"""Projection heads g: representations [n, d] -> projections that the contrastive loss compares.

Under bfloat16 arithmetic the last layer is in float32: a projection is not rounded before the loss.
"""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import numpy as np
from jaxtyping import Array, Float

from invclr_jax import parallel
from invclr_jax.models.dtypes import at_least_float32, lax_precision
from invclr_jax.models.norm import BatchNorm

Representations = Float[Array | np.ndarray, "n d"]

# U(-1/√fan_in, 1/√fan_in), PyTorch's default for dense layers and hence the authors'.
torch_uniform = nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")


class ProjectionHead(nn.Module):
    """Dense layers without bias, batch norm and ReLU between them; the authors' by default.

    Theirs is dense, batch norm, ReLU, dense, batch norm without affine. Apply it to the views
    apart, as they do: their batch statistics are not mixed.

    Attributes:
      output_dim: length of a projection; None for that of the input, as of a predictor.
      dtype, axis, groups, unbiased: as of `invclr_jax.models.resnet.ResNet`.
      hidden: width of each hidden layer; None for one as wide as the input.
      normalised: whether batch norm without affine comes last.
      bias: whether the last dense layer has a bias.
      precision: as of `invclr_jax.models.resnet.ResNet`.
    """

    output_dim: int | None = 128
    dtype: Any = None
    axis: parallel.Axis = None
    groups: int = 1
    unbiased: bool = False
    hidden: Sequence[int] | None = None
    normalised: bool = True
    bias: bool = False
    precision: str = "default"

    @nn.compact
    def __call__(self, z: Representations, train: bool = False) -> Float[Array, "n p"]:
        """Projects representations; `train` uses and updates batch statistics."""
        spread, dim = (self.axis, self.groups, self.unbiased), z.shape[-1]
        widths = (dim,) if self.hidden is None else self.hidden
        for i, width in enumerate(widths, start=1):
            z = _dense(width, self.dtype, self.precision, False, f"dense{i}")(z)
            z = nn.relu(BatchNorm(*spread, dtype=self.dtype, name=f"bn{i}")(z, train))
        last, dtype = len(widths) + 1, _of_last_layer(self.dtype)
        options = dtype, self.precision, self.bias, f"dense{last}"
        output = _dense(self.output_dim or dim, *options)(z)
        if not self.normalised:
            return output
        return BatchNorm(*spread, affine=False, name=f"bn{last}")(output, train)


class MoCoHead(nn.Module):
    """MoCo v2's head: dense, ReLU, dense, with biases and without batch norm.

    Attributes:
      output_dim: length of a projection; the hidden layer is as wide as the representation.
      dtype, precision: as of `invclr_jax.models.resnet.ResNet`.
    """

    output_dim: int = 128
    dtype: Any = None
    precision: str = "default"

    @nn.compact
    def __call__(self, z: Representations, train: bool = False) -> Float[Array, "n p"]:
        """Projects representations; `train` makes no difference."""
        del train
        hidden = nn.relu(_dense(z.shape[-1], self.dtype, self.precision, True, "dense1")(z))
        last = _of_last_layer(self.dtype), self.precision, True, "dense2"
        return _dense(self.output_dim, *last)(hidden)


def _of_last_layer(dtype: Any) -> Any:
    """float32 at least; None still follows inputs and parameters."""
    return None if dtype is None else at_least_float32(dtype)


def _dense(features: int, dtype: Any, precision: str, use_bias: bool, name: str) -> nn.Dense:
    return nn.Dense(
        features,
        use_bias=use_bias,
        dtype=dtype,
        param_dtype=at_least_float32(dtype),
        precision=lax_precision(precision),
        kernel_init=torch_uniform,
        name=name,
    )
