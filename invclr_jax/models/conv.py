"""Convolutions without bias, padded alike on both sides."""

from typing import Any

import flax.linen as nn
import jax
from jaxtyping import Array, Float

from invclr_jax.models.dtypes import at_least_float32

METHODS = ("auto", "xla", "matmul")

# As torchvision: He et al. (2015), keeping the variance of the backward pass.
kaiming_normal = nn.initializers.variance_scaling(2.0, "fan_out", "normal")


def convolve(
    x: Float[Array, "n h w c"], kernel: Float[Array, "k k c f"], stride: int = 1
) -> Float[Array, "n p q f"]:
    """Convolves with a k×k kernel, padding (k-1)/2 zeros on each side (k is odd)."""
    pad = kernel.shape[0] // 2
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        ((pad, pad), (pad, pad)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


class Conv(nn.Module):
    """A k×k convolution without bias.

    Attributes:
      features: output channels.
      size: k, odd; (k-1)/2 zeros are padded on each side.
      stride: step between outputs.
      method: `xla`, `matmul` (fast weight gradients on CPUs), or `auto`: by platform.
      dtype: dtype of the arithmetic, None for that of input and kernel together.
    """

    features: int
    size: int = 3
    stride: int = 1
    method: str = "auto"
    dtype: Any = None

    @nn.compact
    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n p q f"]:
        """Convolves the images."""
        shape = (self.size, self.size, x.shape[-1], self.features)
        kernel = self.param("kernel", kaiming_normal, shape, at_least_float32(self.dtype))
        x, kernel = nn.dtypes.promote_dtype(x, kernel, dtype=self.dtype)
        return convolve(x, kernel, self.stride)
