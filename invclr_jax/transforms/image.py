"""The transformation of natural images: crop, flip, jitter, grey, normalise."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray, UInt8

from invclr_jax.transforms import colour, geometry
from invclr_jax.transforms.base import Box

Images = UInt8[Array | np.ndarray, "n h w 3"] | Float[Array | np.ndarray, "n h w 3"]


STRENGTHS = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
"""Test-time strengths of the jitter (Fig. 4)."""


class ImageBeta(NamedTuple):
    """What the penalty leaves alone: crops (None where there are none) and coins, `[n]` each."""

    crops: geometry.Crops | None
    flip: Bool[Array, " n"]
    jitter: Bool[Array, " n"]
    grey: Bool[Array, " n"]


@dataclasses.dataclass(frozen=True)
class ImageTransform:
    """Random resized crop, flip, colour jitter, greyscale and normalisation.

    alpha is (brightness, contrast, saturation, hue), drawn from U(1-0.8S, 1+0.8S)³ × U(-0.2S, 0.2S)
    for the strength S; everything else is beta. An image whose jitter is off keeps its alpha, and
    its derivative in alpha is 0. From S = 1.25 on the lower end of the factors stays at 0, as in
    torchvision: below it a factor would blacken or invert the image.

    Test-time variants come by `dataclasses.replace`: `crop=False, flip=False, grey_probability=0,
    jitter_probability=1` leaves colour alone, at any `strength`.

    Attributes:
      size: side of the result in pixels, or its (height, width).
      mean: of each channel, subtracted last.
      std: of each channel, divided by last.
      strength: S; the paper trains at 0.5.
      variant: which hue, see `colour.adjust_hue`.
      jitter_probability: how often colours are jittered.
      grey_probability: how often the image becomes grey.
      crop: whether to crop; if not, images are only resized.
      flip: whether to mirror every second image.
      crop_scale: smallest and largest share of the image's area that a crop covers.
    """

    size: int | tuple[int, int]
    mean: Sequence[float] | np.ndarray
    std: Sequence[float] | np.ndarray
    strength: float = 0.5
    variant: colour.Variant = "paper"
    jitter_probability: float = 0.8
    grey_probability: float = 0.2
    crop: bool = True
    flip: bool = True
    crop_scale: Sequence[float] = geometry.SCALE

    def __post_init__(self):
        for name in ("mean", "std", "crop_scale"):  # as tuples, so that the transform is hashable
            object.__setattr__(self, name, tuple(float(v) for v in getattr(self, name)))
        colour.check_variant(self.variant)
        _check_options(self)

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the result."""
        return (self.size, self.size) if isinstance(self.size, int) else self.size

    @property
    def alpha(self) -> Box:
        """The distribution of (brightness, contrast, saturation, hue)."""
        factor, turns = 0.8 * self.strength, 0.2 * self.strength
        low = max(0.0, 1 - factor)
        return Box([low] * 3 + [-turns], [1 + factor] * 3 + [turns], colour.NAMES)

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n 4"], ImageBeta]:
        """Draws alpha `[n, 4]` and beta for `n` images of any size."""
        alpha_key, crop_key, coin_key = jax.random.split(key, 3)
        odds = jnp.array([0.5 * self.flip, self.jitter_probability, self.grey_probability])
        flip, jitter, grey = jax.random.bernoulli(coin_key, odds[None], (n, 3)).T
        crops = geometry.sample_crops(crop_key, n, scale=self.crop_scale) if self.crop else None
        return self.alpha.sample(alpha_key, n), ImageBeta(crops, flip, jitter, grey)

    def apply(
        self, x: Images, alpha: Float[Array | np.ndarray, "n 4"], beta: ImageBeta
    ) -> Float[Array, "n height width 3"]:
        """The transformed images as the encoder sees them.

        Args:
          x: 8-bit images, or floats in [0, 1], of any height and width, `[n, h, w, 3]`.
          alpha: jitter parameters, `[n, 4]`.
          beta: crops and coins of `sample`.

        Returns:
          Normalised images of the transform's size, `[n, height, width, 3]`.
        """
        images = _as_floats(x)
        alpha = colour.check_alpha(alpha, len(images))
        images = self._place(images, beta)
        jittered = colour.colour_jitter(images, alpha, variant=self.variant)
        images = jnp.where(_spread(beta.jitter), jittered, images)
        images = jnp.where(_spread(beta.grey), colour.greyscale(images), images)
        return self._normalise(images)

    def untransformed(self, x: Images) -> Float[Array, "n height width 3"]:
        """The plain images, resized if need be and normalised, `[n, height, width, 3]`."""
        return self._normalise(geometry.resize(_as_floats(x), self.shape))

    def shifts(self) -> tuple["ImageTransform", dict[str, "ImageTransform"]]:
        """The authors' grid: colour alone, always, without crop, flip and grey, by strength."""
        regime = dataclasses.replace(
            self, crop=False, flip=False, grey_probability=0.0, jitter_probability=1.0
        )
        return regime, {
            f"strength={s:g}": dataclasses.replace(regime, strength=s) for s in STRENGTHS
        }

    def _place(self, images: Array, beta: ImageBeta) -> Array:
        if beta.crops is None:
            return geometry.horizontal_flip(geometry.resize(images, self.shape), beta.flip)
        boxes = geometry.crop_boxes(beta.crops, *images.shape[1:3])
        return geometry.crop_and_resize(images, boxes, beta.flip, self.shape)

    def _normalise(self, images: Array) -> Array:
        mean, std = (
            jnp.asarray(v, images.dtype).reshape(1, 1, 1, 3) for v in (self.mean, self.std)
        )
        return (images - mean) / std


def _as_floats(x: Array | np.ndarray) -> Array:
    x = jnp.asarray(x)
    return colour.check_images(x / 255 if x.dtype == jnp.uint8 else x)


def _spread(coin: Bool[Array | np.ndarray, " n"]) -> Bool[Array, "n 1 1 1"]:
    return jnp.asarray(coin, bool)[:, None, None, None]


def _check_options(options: ImageTransform) -> None:
    if len(options.shape) != 2 or min(options.shape) < 1:
        raise ValueError(f"size is {options.size}: give a positive number of pixels, or two")
    if len(options.mean) != 3 or len(options.std) != 3 or min(options.std) <= 0:
        raise ValueError(
            f"mean is {options.mean} and std is {options.std}: give three numbers each, for red, "
            "green and blue, and make every std positive"
        )
    if options.strength < 0:
        raise ValueError(
            f"strength is {options.strength}: use 0 for no jitter, 0.5 for the paper's"
        )
    for name in ("jitter_probability", "grey_probability"):
        if not 0 <= getattr(options, name) <= 1:
            raise ValueError(f"{name} is {getattr(options, name)}: give a probability from 0 to 1")
    low, high = options.crop_scale
    if not 0 < low <= high <= 1:
        raise ValueError(
            f"crop_scale is {options.crop_scale}: give the smallest and the largest share of the "
            "area, above 0, at most 1, in this order"
        )
