"""Convolutions without bias, padded alike on both sides."""

from typing import Any

import flax.linen as nn
import jax
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.models import winograd
from invclr_jax.models.dtypes import at_least_float32

METHODS = ("auto", "xla", "matmul")
FEW_OUTPUTS = 4
"""Up to so many output pixels a convolution is one dense product: XLA's own is slow on CPUs there
(2×2 pixels, 256 channels, batch 128: 30 times)."""

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
      method: `xla` (one convolution operation, right for accelerators), `matmul` (what is faster
        on CPUs: one matrix product for 1×1 kernels and tiny outputs, Winograd's products for 3×3
        kernels, and XLA's convolution for the rest), or `auto`: `matmul` on CPUs.

    Returns:
      The same numbers by either method, up to rounding.
    """
    if method == "auto":
        method = "matmul" if jax.default_backend() == "cpu" else "xla"
    if method == "xla":
        return _convolve_xla(x, kernel, stride)
    if kernel.shape[0] == 1:
        x = x[:, ::stride, ::stride]
        # Of two matrices, so that the gradient in the kernel is one too: it is copied otherwise.
        y = x.reshape(-1, x.shape[-1]) @ kernel[0, 0]
        return y.reshape(*x.shape[:3], -1)
    if -(-x.shape[1] // stride) * -(-x.shape[2] // stride) <= FEW_OUTPUTS:
        return _convolve_dense(x, kernel, stride)
    if stride == 1 and winograd.suits(x, kernel):
        return winograd.convolve(x, kernel)
    return _convolve_xla(x, kernel, stride)


def _convolve_xla(x: Array, kernel: Array, stride: int) -> Array:
    pad = kernel.shape[0] // 2
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        ((pad, pad), (pad, pad)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def _convolve_dense(x: Array, kernel: Array, stride: int) -> Array:
    """The convolution as one product of all input with all output pixels and channels."""
    k, _, channels, features = kernel.shape
    rows, columns = (_reach(size, k, stride) for size in x.shape[1:3])
    entries = np.einsum("hpk,vql->hvpqkl", rows, columns).astype(kernel.dtype)
    h, v, p, q = entries.shape[:4]
    blocks = entries.reshape(-1, k * k) @ kernel.reshape(k * k, -1)
    matrix = blocks.reshape(h * v, p * q, channels, features).swapaxes(1, 2)
    y = x.reshape(len(x), -1) @ matrix.reshape(h * v * channels, p * q * features)
    return y.reshape(len(x), p, q, features)


def _reach(size: int, k: int, stride: int) -> np.ndarray:
    """`[size, outputs, k]`: 1 where an output sees an input through an entry of the kernel."""
    inputs, outputs, entries = np.ogrid[:size, : -(-size // stride), :k]
    return (inputs == outputs * stride + entries - k // 2).astype(np.float32)


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
