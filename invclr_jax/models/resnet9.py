"""ResNet9 as in fast CIFAR training (Page, 2018): 3×3 convolutions of stride 1, then pooling.

Every convolution has the shape that Winograd's kernels are fastest at.
"""

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.models.dtypes import at_least_float32
from invclr_jax.models.resnet import Layers

SMALLEST = 8
"""Side in pixels below which nothing would be left after three poolings."""


class ResNet9(Layers):
    """Eight convolutions, two of the four stages with a residual pair, up to average pooling.

    Page's network ends with max pooling over all pixels; ours averages, as the other encoders do.

    Attributes:
      width: channels of the first stage; 64 is standard. The others have 2, 4 and 8 times as many.
      conv, dtype, precision, axis, groups, unbiased: as of `invclr_jax.models.resnet.ResNet`.
    """

    width: int = 64

    def __post_init__(self):
        if self.width < 1:
            raise ValueError(f"width must be a positive number of channels, got {self.width}")
        super().__post_init__()

    @property
    def representation_dim(self) -> int:
        """d, the length of a representation."""
        return 8 * self.width

    @nn.compact
    def __call__(
        self, images: Float[Array | np.ndarray, "n h w c"], train: bool = False
    ) -> Float[Array, "n d"]:
        """Encodes normalised images.

        Args:
          images: `[n, h, w, c]`, at least 8 pixels high and wide.
          train: whether batch norm uses the batch's statistics and updates the running ones.

        Returns:
          Representations z, `[n, 8 * width]`.
        """
        if images.ndim != 4 or min(images.shape[1:3]) < SMALLEST:
            raise ValueError(
                f"ResNet9 takes images [n, height, width, channels] of at least {SMALLEST}×"
                f"{SMALLEST} pixels, got shape {images.shape}"
            )
        x = self._unit(jnp.asarray(images), self.width, "stem", train)
        for stage, residual in ((1, True), (2, False), (3, True)):
            name, features = f"layer{stage}", self.width * 2**stage
            x = halve(self._unit(x, features, name, train))
            if residual:
                inside = self._unit(x, features, f"{name}_inner1", train)
                x = x + self._unit(inside, features, f"{name}_inner2", train)
        return x.astype(at_least_float32(x.dtype)).mean((1, 2))

    def _unit(self, x: Array, features: int, name: str, train: bool) -> Array:
        """Convolution, batch norm, ReLU."""
        x = self._conv(features, 3, 1, f"{name}_conv")(x)
        return nn.relu(self._norm(f"{name}_bn")(x, train))


def halve(x: Float[Array, "n h w c"]) -> Float[Array, "n p q c"]:
    """The largest of every 2×2 pixels; an odd last row or column is left out."""
    n, h, w, c = x.shape
    whole = x[:, : h // 2 * 2, : w // 2 * 2]
    return whole.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))
