"""Convolutions without bias, padded alike on both sides."""

from typing import Any

import flax.linen as nn
import jax
from jaxtyping import Array, Float

from invclr_jax.models import trilinear
from invclr_jax.models.dtypes import at_least_float32

METHODS = ("auto", "xla", "matmul")

# As torchvision: He et al. (2015), keeping the variance of the backward pass.
kaiming_normal = nn.initializers.variance_scaling(2.0, "fan_out", "normal")


def convolve(
    x: Float[Array, "n h v c"],
    kernel: Float[Array, "k k c f"],
    stride: int = 1,
    method: str = "auto",
) -> Float[Array, "n p q f"]:
    """Convolves with a k×k kernel, padding (k-1)/2 zeros on each side (k is odd).

    Args:
      x: images or activations.
      kernel: height, width, input and output channels.
      stride: step between outputs.
      method: `xla` (one convolution operation, right for accelerators), `matmul` (matrix products
        for 1×1 kernels and all weight gradients, which XLA's CPU backend computes slowly), or
        `auto`: `matmul` on CPUs.

    Returns:
      The same numbers by either method, up to rounding.
    """
    if method == "auto":
        method = "matmul" if jax.default_backend() == "cpu" else "xla"
    if method == "xla":
        return trilinear.convolve_xla(x, kernel, stride)
    if kernel.shape[0] == 1:
        return x[:, ::stride, ::stride] @ kernel[0, 0]
    return trilinear.convolve(x, kernel, stride)


class Conv(nn.Module):
    """A k×k convolution without bias.

    Attributes:
      features: output channels.
      size: k, odd; (k-1)/2 zeros are padded on each side.
      stride: step between outputs.
      method: `auto`, `xla` or `matmul`, see `convolve`.
      dtype: dtype of the arithmetic, None for that of input and kernel together.
    """

    features: int
    size: int = 3
    stride: int = 1
    method: str = "auto"
    dtype: Any = None

    @nn.compact
    def __call__(self, x: Float[Array, "n h v c"]) -> Float[Array, "n p q f"]:
        """Convolves the images."""
        shape = (self.size, self.size, x.shape[-1], self.features)
        kernel = self.param("kernel", kaiming_normal, shape, at_least_float32(self.dtype))
        x, kernel = nn.dtypes.promote_dtype(x, kernel, dtype=self.dtype)
        return convolve(x, kernel, self.stride, self.method)
