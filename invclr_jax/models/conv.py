"""Convolutions without bias, padded alike on both sides."""

from typing import Any

import flax.linen as nn
from jaxtyping import Array, Float

from invclr_jax.models import forms, primitives
from invclr_jax.models.dtypes import at_least_float32

CONVOLUTIONS = ("auto", "xla")

# As torchvision: He et al. (2015), keeping the variance of the backward pass.
kaiming_normal = nn.initializers.variance_scaling(2.0, "fan_out", "normal")


def convolve(
    x: Float[Array, "n h v c"],
    kernel: Float[Array, "k k c f"],
    stride: int = 1,
    method: str = "auto",
    precision: str = "default",
) -> Float[Array, "n p q f"]:
    """Convolves with a k×k kernel, padding (k-1)/2 zeros on each side (k is odd).

    Args:
      x: images or activations.
      kernel: height, width, input and output channels.
      stride: step between outputs.
      method: `xla` is one convolution operation everywhere; `auto` is that on accelerators and
        what is faster on CPUs: one matrix product for 1×1 kernels and tiny outputs, Winograd's
        products for 3×3 kernels. The choice is made when a program is lowered.
      precision: of float32 products on accelerators, see `invclr_jax.models.dtypes.PRECISIONS`.

    Returns:
      The same numbers by either method, up to rounding.
    """
    if method not in CONVOLUTIONS:
        raise ValueError(f"conv {method!r} is unknown: use one of {', '.join(CONVOLUTIONS)}")
    return (primitives.convolve if method == "auto" else forms.xla)(x, kernel, stride, precision)


class Conv(nn.Module):
    """A k×k convolution without bias.

    Attributes:
      features: output channels.
      size: k, odd; (k-1)/2 zeros are padded on each side.
      stride: step between outputs.
      method: `auto` or `xla`, see `convolve`.
      dtype: dtype of the arithmetic, None for that of input and kernel together.
      precision: see `convolve`.
    """

    features: int
    size: int = 3
    stride: int = 1
    method: str = "auto"
    dtype: Any = None
    precision: str = "default"

    @nn.compact
    def __call__(self, x: Float[Array, "n h v c"]) -> Float[Array, "n p q f"]:
        """Convolves the images."""
        shape = (self.size, self.size, x.shape[-1], self.features)
        kernel = self.param("kernel", kaiming_normal, shape, at_least_float32(self.dtype))
        x, kernel = nn.dtypes.promote_dtype(x, kernel, dtype=self.dtype)
        return convolve(x, kernel, self.stride, self.method, self.precision)
