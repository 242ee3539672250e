"""ResNet encoders f: images [n, h, w, c] -> representations [n, d], with torchvision's blocks."""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax import parallel
from invclr_jax.models.conv import CONVOLUTIONS, Conv
from invclr_jax.models.dtypes import at_least_float32
from invclr_jax.models.norm import BatchNorm

STEMS = ("cifar", "standard", "auto")
SMALLEST_STANDARD = 64
"""Side in pixels below which the standard stem, which divides sizes by four, is refused."""


def check_stem(stem: str, size: int) -> str:
    """The stem to use for images whose shorter side has `size` pixels.

    Args:
      stem: `cifar` (3×3, no pooling), `standard` (7×7 with stride 2, then pooling), or `auto`:
        `standard` from 64 pixels on.
      size: shorter side of the images.

    Returns:
      `cifar` or `standard`.
    """
    if stem not in STEMS:
        raise ValueError(f"stem {stem!r} is unknown: use one of {', '.join(STEMS)}")
    if stem == "auto":
        return "standard" if size >= SMALLEST_STANDARD else "cifar"
    if stem == "standard" and size < SMALLEST_STANDARD:
        raise ValueError(
            f"the standard 7×7 stem needs images of {SMALLEST_STANDARD} pixels or more, got "
            f'{size}: use stem="cifar" for small pictures'
        )
    return stem


_SHARED = ("conv", "dtype", "precision", "axis", "groups", "unbiased")


class Layers(nn.Module, kw_only=True):
    """What all parts of an encoder share: how to convolve and how to normalise."""

    conv: str = "auto"
    dtype: Any = None
    precision: str = "default"
    axis: parallel.Axis = None
    groups: int = 1
    unbiased: bool = False

    def _conv(self, features: int, size: int, stride: int, name: str) -> Conv:
        options = self.conv, self.dtype, self.precision
        return Conv(features, size, stride, *options, name=name)

    def _norm(self, name: str) -> BatchNorm:
        return BatchNorm(self.axis, self.groups, self.unbiased, dtype=self.dtype, name=name)

    def _shared(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SHARED}


class _Block(Layers):
    """A residual block: `relu(residual(x) + shortcut(x))`.

    Attributes:
      features: channels inside the block; it gives `expansion` times as many.
      stride: by how much the block reduces height and width.
    """

    features: int
    stride: int = 1

    expansion = 1

    @nn.compact
    def __call__(self, x: Float[Array, "n h w c"], train: bool = False) -> Float[Array, "n p q f"]:
        """Returns the block's output; `train` normalises by batch statistics."""
        residual = self._residual(x, train)
        if residual.shape != x.shape:
            x = self._conv(residual.shape[-1], 1, self.stride, "downsample_conv")(x)
            x = self._norm("downsample_bn")(x, train)
        return nn.relu(residual + x)

    def _residual(self, x: Array, train: bool) -> Array:
        raise NotImplementedError


class BasicBlock(_Block):
    """Two 3×3 convolutions; the stride sits in the first."""

    def _residual(self, x: Array, train: bool) -> Array:
        x = self._conv(self.features, 3, self.stride, "conv1")(x)
        x = nn.relu(self._norm("bn1")(x, train))
        x = self._conv(self.features, 3, 1, "conv2")(x)
        return self._norm("bn2")(x, train)


class Bottleneck(_Block):
    """1×1, 3×3 and 1×1 convolutions; the stride sits in the 3×3."""

    expansion = 4

    def _residual(self, x: Array, train: bool) -> Array:
        x = self._conv(self.features, 1, 1, "conv1")(x)
        x = nn.relu(self._norm("bn1")(x, train))
        x = self._conv(self.features, 3, self.stride, "conv2")(x)
        x = nn.relu(self._norm("bn2")(x, train))
        x = self._conv(self.features * self.expansion, 1, 1, "conv3")(x)
        return self._norm("bn3")(x, train)


class ResNet(Layers):
    """A residual network up to global average pooling, without a classifier.

    Parameters are named `stem_conv`, `stem_bn`, and `layer1_block0` … `layer4_block2`, each with
    `conv1`, `bn1`, … and, where the shape changes, `downsample_conv` and `downsample_bn`.

    Attributes:
      block: `BasicBlock` or `Bottleneck`.
      depths: blocks in each of the four stages.
      width: channels of the first stage; 64 is standard, the others follow.
      stem: `cifar`, `standard` or `auto`, see `check_stem`.
      conv: `auto` or `xla`, see `invclr_jax.models.conv`.
      dtype: dtype of the arithmetic, such as bfloat16; None follows images and parameters.
        Statistics, parameters and the representation are in float32 at least.
      precision: of float32 products on accelerators, see `invclr_jax.models.dtypes.PRECISIONS`.
      axis: name of the mapped device axis, None on a single device.
      groups: batch norm groups of the whole batch, see `invclr_jax.models.norm.norm_groups`.
      unbiased: whether batch norm's running variance is PyTorch's.
      remat: whether to recompute each block in the backward pass, to save memory.
    """

    block: type[_Block]
    depths: tuple[int, ...]
    width: int = 64
    stem: str = "cifar"
    remat: bool = False

    def __post_init__(self):
        if self.width < 1:
            raise ValueError(f"width must be a positive number of channels, got {self.width}")
        if self.conv not in CONVOLUTIONS:
            raise ValueError(f"conv {self.conv!r} is unknown: use one of {', '.join(CONVOLUTIONS)}")
        if self.stem not in STEMS:
            raise ValueError(f"stem {self.stem!r} is unknown: use one of {', '.join(STEMS)}")
        super().__post_init__()

    @property
    def representation_dim(self) -> int:
        """d, the length of a representation."""
        return self.width * 2 ** (len(self.depths) - 1) * self.block.expansion

    @nn.compact
    def __call__(
        self, images: Float[Array | np.ndarray, "n h w c"], train: bool = False
    ) -> Float[Array, "n d"]:
        """Encodes normalised images.

        Args:
          images: `[n, h, w, c]`, as a transform's `apply` gives them.
          train: whether batch norm uses the batch's statistics and updates the running ones
            (apply with `mutable=["batch_stats"]`).

        Returns:
          Representations z, `[n, d]`.
        """
        if images.ndim != 4:
            raise ValueError(
                f"the encoder takes images [n, height, width, channels], got shape {images.shape}: "
                "put the channels last and add a leading axis to a single image"
            )
        x = self._stem(jnp.asarray(images), train)
        block = nn.remat(self.block, static_argnums=(2,)) if self.remat else self.block
        for stage, depth in enumerate(self.depths):
            for index in range(depth):
                stride = 2 if stage > 0 and index == 0 else 1
                name = f"layer{stage + 1}_block{index}"
                features = self.width * 2**stage
                x = block(features, stride, **self._shared(), name=name)(x, train)
        return x.astype(at_least_float32(x.dtype)).mean((1, 2))

    def _stem(self, x: Array, train: bool) -> Array:
        standard = check_stem(self.stem, min(x.shape[1:3])) == "standard"
        size, stride = (7, 2) if standard else (3, 1)
        x = self._conv(self.width, size, stride, "stem_conv")(x)
        x = nn.relu(self._norm("stem_bn")(x, train))
        return nn.max_pool(x, (3, 3), (2, 2), ((1, 1), (1, 1))) if standard else x


class ResNet10(ResNet):
    """One basic block a stage; for small experiments."""

    block: type[_Block] = BasicBlock
    depths: tuple[int, ...] = (1, 1, 1, 1)


class ResNet18(ResNet):
    """Two basic blocks a stage."""

    block: type[_Block] = BasicBlock
    depths: tuple[int, ...] = (2, 2, 2, 2)


class ResNet34(ResNet):
    """Basic blocks, 3, 4, 6 and 3 of them."""

    block: type[_Block] = BasicBlock
    depths: tuple[int, ...] = (3, 4, 6, 3)


class ResNet50(ResNet):
    """Bottlenecks, 3, 4, 6 and 3 of them."""

    block: type[_Block] = Bottleneck
    depths: tuple[int, ...] = (3, 4, 6, 3)
