"""Transforms around the functions of `filters`."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, UInt32

from invclr_jax.transforms import filters
from invclr_jax.transforms.base import Box, Distribution
from invclr_jax.transforms.pictures import Images, as_floats, check_alpha
from invclr_jax.transforms.spatial import check_size
from invclr_jax.transforms.wrappers import NOTHING

BLURS = Box([0.1], [2.0], ["blur"])
SHARPNESSES = Box([0.0], [2.0], ["sharpness"])
GAMMAS = Box([-0.5], [0.5], ["log2_gamma"])
NOISES = Box([0.0], [0.1], ["noise"])


class _OfPictures:
    """What these transforms share: draws of alpha alone, and plain pictures as floats."""

    alpha: Any

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n a"], Any]:
        """Draws alpha `[n, a]`; there is no beta."""
        return self.alpha.sample(key, n), None

    def untransformed(self, x: Images) -> Float[Array, "n h w c"]:
        """The images as floats, `[n, h, w, c]`."""
        return as_floats(x)


class _OfOneParameter(_OfPictures):
    _name: ClassVar[str]

    def __post_init__(self):
        check_size(self.alpha, (self._name,), type(self).__name__)

    def apply(
        self, x: Images, alpha: Float[Array | np.ndarray, "n 1"], beta: Any = None
    ) -> Float[Array, "n h w c"]:
        """The changed images, floats, `[n, h, w, c]`."""
        images = as_floats(x)
        parameter = check_alpha(alpha, len(images), (self._name,))[:, 0]
        return self._change(images, parameter, beta)

    def _change(self, images: Array, parameter: Array, beta: Any) -> Array:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Blur(_OfOneParameter):
    """Gaussian blur; alpha is its standard deviation in pixels, see `filters.gaussian_blur`."""

    alpha: Distribution = BLURS
    _name = "blur"

    def _change(self, images: Array, parameter: Array, beta: None) -> Array:
        return filters.gaussian_blur(images, parameter)


@dataclasses.dataclass(frozen=True)
class Sharpness(_OfOneParameter):
    """Sharpness; alpha is the factor of `filters.adjust_sharpness`."""

    alpha: Distribution = SHARPNESSES
    _name = "sharpness"

    def _change(self, images: Array, parameter: Array, beta: None) -> Array:
        return filters.adjust_sharpness(images, parameter)


@dataclasses.dataclass(frozen=True)
class Gamma(_OfOneParameter):
    """Gamma correction; alpha is log2_gamma of `filters.adjust_gamma`."""

    alpha: Distribution = GAMMAS
    _name = "log2_gamma"

    def _change(self, images: Array, parameter: Array, beta: None) -> Array:
        return filters.adjust_gamma(images, parameter)


@dataclasses.dataclass(frozen=True)
class Noise(_OfOneParameter):
    """Additive noise; alpha is its standard deviation, beta the seeds of the noise itself."""

    alpha: Distribution = NOISES
    _name = "noise"

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n 1"], UInt32[Array, "n 2"]]:
        """Draws alpha `[n, 1]` and seeds `[n, 2]`."""
        alpha_key, noise_key = jax.random.split(key)
        return self.alpha.sample(alpha_key, n), jax.random.bits(noise_key, (n, 2), jnp.uint32)

    def _change(self, images: Array, parameter: Array, beta: Array | np.ndarray) -> Array:
        return filters.add_noise(images, parameter, beta)


@dataclasses.dataclass(frozen=True)
class Solarise(_OfPictures):
    """Inverts what is bright; a threshold has no useful derivative, so there is no alpha.

    Attributes:
      threshold: in [0, 1].
    """

    threshold: float = 0.5
    alpha = NOTHING

    def apply(self, x: Images, alpha: Any = None, beta: None = None) -> Float[Array, "n h w c"]:
        """The solarised images, floats, `[n, h, w, c]`."""
        images = as_floats(x)
        return filters.solarise(images, jnp.full(len(images), self.threshold, images.dtype))


@dataclasses.dataclass(frozen=True)
class Cutout(_OfPictures):
    """Covers a square at a random place, which is beta.

    Attributes:
      side: of the square, as a share of the shorter side of the image.
      fill: the value that covers.
    """

    side: float = 0.5
    fill: float = 0.5
    alpha = NOTHING

    def __post_init__(self):
        if not 0 < self.side <= 2:
            raise ValueError(f"side is {self.side}: give a share of the image's side, up to 2")

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n 0"], Float[Array, "n 2"]]:
        """Draws no alpha, `[n, 0]`, and centres `[n, 2]`."""
        return jnp.zeros((n, 0)), jax.random.uniform(key, (n, 2))

    def apply(
        self, x: Images, alpha: Any, beta: Float[Array | np.ndarray, "n 2"]
    ) -> Float[Array, "n h w c"]:
        """The covered images, floats, `[n, h, w, c]`."""
        return filters.cutout(as_floats(x), beta, self.side, self.fill)
