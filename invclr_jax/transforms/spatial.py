"""Transforms that move pixels: affine maps and crops whose parameters are alpha."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.transforms import geometry, warping
from invclr_jax.transforms.base import Box, Distribution, LogOfUniform, Product
from invclr_jax.transforms.pictures import Images, as_floats

ROTATIONS = Box((-1 / 12, 0, 0, 0, 0, 0), (1 / 12, 0, 0, 0, 0, 0), warping.NAMES)
"""Rotations by up to 30 degrees either way, and nothing else."""


@dataclasses.dataclass(frozen=True)
class Affine:
    """Rotation, shifts, scale and shears, all in alpha; see `geometry.affine`.

    Attributes:
      alpha: the distribution of (angle, shift_down, shift_right, log2_scale, shear_down,
        shear_right); a component with equal ends is fixed.
    """

    alpha: Distribution = ROTATIONS

    def __post_init__(self):
        check_size(self.alpha, warping.NAMES, "Affine")

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n 6"], None]:
        """Draws alpha `[n, 6]`; there is no beta."""
        return self.alpha.sample(key, n), None

    def apply(
        self, x: Images, alpha: Float[Array | np.ndarray, "n 6"], beta: None = None
    ) -> Float[Array, "n h w c"]:
        """The moved images, floats, `[n, h, w, c]`."""
        scale = warping.NAMES.index("log2_scale")
        never_shrinks = self.alpha.variance[scale] == 0 and self.alpha.mean[scale] >= 0
        return geometry.affine(as_floats(x), alpha, antialias=not never_shrinks)

    def untransformed(self, x: Images) -> Float[Array, "n h w c"]:
        """The images as floats, `[n, h, w, c]`."""
        return as_floats(x)


@dataclasses.dataclass(frozen=True)
class Crop:
    """A crop whose place, area and aspect are alpha; see `geometry.crop`.

    Attributes:
      size: side of the result in pixels, or its (height, width).
      alpha: the distribution of (crop_down, crop_right, crop_log_area, crop_log_aspect); that of
        the random resized crop with areas from 0.08 to 1 unless given.
    """

    size: int | tuple[int, int]
    alpha: Distribution = dataclasses.field(default_factory=lambda: random_resized_crops())

    def __post_init__(self):
        check_size(self.alpha, geometry.NAMES, "Crop")
        if len(self.shape) != 2 or min(self.shape) < 1:
            raise ValueError(f"size is {self.size}: give a positive number of pixels, or two")

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the result."""
        return (self.size, self.size) if isinstance(self.size, int) else self.size

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n 4"], None]:
        """Draws alpha `[n, 4]`; there is no beta."""
        return self.alpha.sample(key, n), None

    def apply(
        self, x: Images, alpha: Float[Array | np.ndarray, "n 4"], beta: None = None
    ) -> Float[Array, "n height width c"]:
        """The crops, floats, `[n, height, width, c]`."""
        return geometry.crop(as_floats(x), alpha, self.shape)

    def untransformed(self, x: Images) -> Float[Array, "n height width c"]:
        """The whole images as floats, resized if need be, `[n, height, width, c]`."""
        return geometry.resize(as_floats(x), self.shape)


def random_resized_crops(
    scale: Sequence[float] = geometry.SCALE, ratio: Sequence[float] = geometry.RATIO
) -> Product:
    """The distribution of `geometry.crop`'s alpha that torchvision's random resized crop has.

    Place and area are uniform, the aspect is log-uniform. A side that would be longer than the
    image is cut, where torchvision draws again.

    Args:
      scale: smallest and largest share of the image's area.
      ratio: smallest and largest aspect.
    """
    place = Box((-1, -1), (1, 1), geometry.NAMES[:2])
    area = LogOfUniform(scale[:1], scale[1:], geometry.NAMES[2:3])
    low, high = np.log(ratio)
    return Product((place, area, Box([low], [high], geometry.NAMES[3:])), geometry.NAMES)


def check_size(distribution: Distribution, names: Sequence[str], what: str) -> None:
    """Raises ValueError unless the distribution has a component for each name."""
    if distribution.size != len(names):
        raise ValueError(
            f"{what} was given a distribution of {distribution.size} components: it needs "
            f"{len(names)}, ({', '.join(names)})"
        )
