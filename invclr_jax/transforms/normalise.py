"""Normalisation by channel: the last part of most transforms."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.transforms.base import Box
from invclr_jax.transforms.pictures import Images, as_floats
from invclr_jax.transforms.protocol import Transform
from invclr_jax.transforms.wrappers import NOTHING


@dataclasses.dataclass(frozen=True)
class Normalise:
    """Subtracts a mean and divides by a standard deviation: the last part of a composition.

    Attributes:
      mean: of each channel.
      std: of each channel, positive.
    """

    mean: Sequence[float] | np.ndarray
    std: Sequence[float] | np.ndarray
    alpha: ClassVar[Box] = NOTHING

    def __post_init__(self):
        for name in ("mean", "std"):  # as tuples, so that the transform is hashable
            object.__setattr__(self, name, tuple(float(v) for v in getattr(self, name)))
        check_statistics(self.mean, self.std)

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n 0"], None]:
        """Draws nothing, `[n, 0]`."""
        return jnp.zeros((n, 0)), None

    def apply(self, x: Images, alpha: Any = None, beta: None = None) -> Float[Array, "n h w c"]:
        """The normalised images, `[n, h, w, c]`."""
        return self.untransformed(x)

    def untransformed(self, x: Images) -> Float[Array, "n h w c"]:
        """The normalised images, `[n, h, w, c]`."""
        return self._normalised(self.check(as_floats(x)))

    def check(self, images: Float[Array, "n h w c"]) -> Float[Array, "n h w c"]:
        """The images, or a ValueError if they have another number of channels than the mean."""
        if images.shape[-1] != len(self.mean):
            raise ValueError(
                f"images have {images.shape[-1]} channels, channels last, and mean has "
                f"{len(self.mean)}: give one mean and one std for each channel"
            )
        return images

    def _normalised(self, images: Array) -> Array:
        mean, std = (
            jnp.asarray(v, images.dtype).reshape(1, 1, 1, -1) for v in (self.mean, self.std)
        )
        return (images - mean) / std


def check_statistics(mean: Any, std: Any) -> None:
    """Raises ValueError unless there is a mean and a positive std for each channel."""
    if not mean or len(mean) != len(std) or min(std) <= 0:
        raise ValueError(
            f"mean is {mean} and std is {std}: give one number of each for every channel, and make "
            "every std positive"
        )


def without_normalisation(transform: Transform) -> Transform:
    """The same transform with pictures in [0, 1], for encoders that normalise themselves.

    Args:
      transform: `Normalise`, or one with `mean` and `std` such as `ImageTransform`, alone or inside
        compositions and wrappers; any other is returned as it is.
    """
    if not dataclasses.is_dataclass(transform):
        return transform
    fields = {field.name for field in dataclasses.fields(transform) if field.init}
    if {"mean", "std"} <= fields:
        channels = len(transform.mean)
        return dataclasses.replace(transform, mean=(0.0,) * channels, std=(1.0,) * channels)
    if "transforms" in fields:
        parts = [without_normalisation(part) for part in transform.transforms]
        return dataclasses.replace(transform, transforms=parts)
    if "transform" in fields:
        return dataclasses.replace(transform, transform=without_normalisation(transform.transform))
    return transform
