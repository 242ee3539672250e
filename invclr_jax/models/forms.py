"""Ways to compute a convolution, and which of them is the fastest on CPUs.

Each is a function `(x, kernel, stride, precision) -> y` with the same result up to rounding.
Kernels are k×k with k odd, and (k-1)/2 zeros are padded on each side.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from invclr_jax.models import library
from invclr_jax.models.dtypes import Shaped, lax_precision

FEW_OUTPUTS = 4
"""Up to so many output pixels a convolution is one dense product: XLA's own is slow on CPUs there
(2×2 pixels, 256 channels, batch 128: 30 times)."""

Form = Callable[[Array, Array, int, str], Array]


def fastest_on_cpus(x: Shaped, kernel: Shaped, stride: int) -> Form:
    """The form to use for images and a kernel of these shapes, where `native` has none.

    Args:
      x: images `[n, h, v, c]`.
      kernel: `[k, k, c, f]`.
      stride: step between outputs.
    """
    if kernel.shape[0] == 1:
        return product_of_pixels
    if output_size(x.shape[1], stride) * output_size(x.shape[2], stride) <= FEW_OUTPUTS:
        return product_of_pictures
    return xla


def native(x: Shaped, kernel: Shaped, stride: int, role: str = "convolve") -> str | None:
    """The family of our own C++ (see `library`) that a CPU should use in a role, if any."""
    known = x.dtype == kernel.dtype and x.dtype in (jnp.float32, jnp.bfloat16)
    if not known or library.library() is None:
        return None
    k, _, channels, features = kernel.shape
    few = output_size(x.shape[1], stride) * output_size(x.shape[2], stride) <= FEW_OUTPUTS
    whole = channels % library.CHANNELS == features % library.CHANNELS == 0
    if k == 3 and stride == 1 and whole and not few:
        return "winograd"
    # XLA has good products of matrices in float32 only, and not for a 1×1 kernel's own gradient.
    good = few or (k == 1 and role != "kernel_gradient")
    return None if x.dtype == jnp.float32 and good else "direct"


def output_size(size: int, stride: int) -> int:
    """Pixels of the result along an axis of `size` pixels."""
    return -(-size // stride)


def on_accelerators(x: Array, kernel: Array, stride: int, precision: str = "default") -> Array:
    """XLA's convolution, or its product of matrices for tokens: one row and a 1×1 kernel."""
    form = product_of_pixels if len(kernel) == x.shape[1] == 1 else xla
    return form(x, kernel, stride, precision)


def xla(x: Array, kernel: Array, stride: int, precision: str = "default") -> Array:
    """XLA's own convolution."""
    pad = kernel.shape[0] // 2
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        ((pad, pad), (pad, pad)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        precision=lax_precision(precision),
    )


def product_of_pixels(x: Array, kernel: Array, stride: int, precision: str = "default") -> Array:
    """A 1×1 kernel as one product of all pixels with it."""
    x = x[:, ::stride, ::stride]
    # Of two matrices, so that the gradient in the kernel is one too: it is copied otherwise.
    pixels = x.reshape(-1, x.shape[-1])
    y = jnp.matmul(pixels, kernel[0, 0], precision=lax_precision(precision))
    return y.reshape(*x.shape[:3], -1)


def product_of_pictures(x: Array, kernel: Array, stride: int, precision: str = "default") -> Array:
    """One product of all input with all output pixels and channels."""
    k, _, channels, features = kernel.shape
    rows, columns = (_reach(size, k, stride) for size in x.shape[1:3])
    entries = np.einsum("hpk,vql->hvpqkl", rows, columns).astype(kernel.dtype)
    h, v, p, q = entries.shape[:4]
    product = functools.partial(jnp.matmul, precision=lax_precision(precision))
    blocks = product(entries.reshape(-1, k * k), kernel.reshape(k * k, -1))
    matrix = blocks.reshape(h * v, p * q, channels, features).swapaxes(1, 2)
    y = product(x.reshape(len(x), -1), matrix.reshape(h * v * channels, p * q * features))
    return y.reshape(len(x), p, q, features)


def _reach(size: int, k: int, stride: int) -> np.ndarray:
    """`[size, outputs, k]`: 1 where an output sees an input through an entry of the kernel."""
    inputs, outputs, entries = np.ogrid[:size, : output_size(size, stride), :k]
    return (inputs == outputs * stride + entries - k // 2).astype(np.float32)
