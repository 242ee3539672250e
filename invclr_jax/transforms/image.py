"""The transformation of natural images: crop, flip, affine map, jitter, grey, normalise."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from invclr_jax.transforms import colour, geometry, warping
from invclr_jax.transforms.base import Box, Distribution, Product, Transform
from invclr_jax.transforms.compose import join
from invclr_jax.transforms.image_options import GROUPS, check_options
from invclr_jax.transforms.normalise import Normalise
from invclr_jax.transforms.pictures import Images, as_floats, check_alpha
from invclr_jax.transforms.shifting import DEVIATIONS, moved
from invclr_jax.transforms.spatial import ROTATIONS, Affine, random_resized_crops
from invclr_jax.transforms.wrappers import where

STRENGTHS = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
"""Test-time strengths of the jitter (Fig. 4)."""


class ImageBeta(NamedTuple):
    """What the penalty leaves alone; None where there is no such thing, or where it is alpha.

    Attributes:
      crops: random resized crops.
      flip: coins, `[n]`.
      jitter: coins, `[n]`.
      grey: coins, `[n]`.
      colour: parameters of the jitter, `[n, 4]`.
      affine: parameters of the affine map, `[n, 6]`.
    """

    crops: geometry.Crops | None
    flip: Bool[Array, " n"]
    jitter: Bool[Array, " n"]
    grey: Bool[Array, " n"]
    colour: Float[Array, "n 4"] | None = None
    affine: Float[Array, "n 6"] | None = None


@dataclasses.dataclass(frozen=True)
class ImageTransform:
    """Random resized crop, flip, affine map, colour jitter, greyscale and normalisation.

    `penalised` says what alpha is made of; everything else is beta. Colour is (brightness,
    contrast, saturation, hue), drawn from U(1-0.8S, 1+0.8S)³ × U(-0.2S, 0.2S) for the strength S.
    An image whose jitter is off keeps its alpha, and its derivative in alpha is 0. From S = 1.25 on
    the lower end of the factors stays at 0, as in torchvision: below it a factor would blacken or
    invert the image. A penalised crop is `geometry.crop`, which has a derivative, in place of one
    of whole pixels.

    Test-time variants come by `dataclasses.replace`: `crop=False, flip=False, grey_probability=0,
    jitter_probability=1` leaves colour alone, at any `strength`.

    Attributes:
      size: side of the result in pixels, or its (height, width).
      mean: of each channel, subtracted last. Images may have any number of channels, but jitter and
        grey need three.
      std: of each channel, divided by last.
      strength: S; the paper trains at 0.5.
      variant: which hue, see `colour.adjust_hue`.
      jitter_probability: how often colours are jittered.
      grey_probability: how often the image becomes grey.
      crop: whether to crop; if not, images are only resized.
      flip: whether to mirror every second image.
      crop_scale: smallest and largest share of the image's area that a crop covers.
      crop_ratio: smallest and largest aspect of a crop.
      jitter_widths: of brightness, contrast, saturation and hue at S = 1.
      affine: distribution of an affine map after the crop, see `geometry.affine`, or half the
        widths of a box around 0; None for none, or for rotations by up to 30 degrees if penalised.
      penalised: those of colour, crop and affine that alpha is made of, in this order.
      whole_size: side of pictures that are not cropped, the plain ones among them, or their
        (height, width); None for `size`. An encoder that averages over pixels can learn from small
        crops at the scale of the pictures and then see whole ones.
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
    crop_ratio: Sequence[float] = geometry.RATIO
    jitter_widths: Sequence[float] = (0.8, 0.8, 0.8, 0.2)
    affine: Distribution | Sequence[float] | None = None
    penalised: Sequence[str] = ("colour",)
    whole_size: int | tuple[int, int] | None = None

    def __post_init__(self):
        for name in ("mean", "std", "crop_scale", "crop_ratio", "jitter_widths"):
            # Tuples, so that the transform is hashable.
            object.__setattr__(self, name, tuple(float(v) for v in getattr(self, name)))
        object.__setattr__(self, "penalised", tuple(self.penalised))
        check_options(self)
        object.__setattr__(self, "affine", _distribution(self.affine, "affine" in self.penalised))

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the result."""
        return _shape(self.size)

    @property
    def whole_shape(self) -> tuple[int, int]:
        """Height and width of pictures that are not cropped."""
        return self.shape if self.whole_size is None else _shape(self.whole_size)

    @property
    def distributions(self) -> dict[str, Distribution]:
        """The distribution of each group of parameters, whether it is penalised or not."""
        groups: dict[str, Distribution] = {"colour": self._colour()}
        if "crop" in self.penalised:
            still = Box([0] * 4, [0] * 4, geometry.NAMES)
            groups["crop"] = (
                random_resized_crops(self.crop_scale, self.crop_ratio) if self.crop else still
            )
        if self.affine is not None:
            groups["affine"] = cast(Distribution, self.affine)
        return groups

    @property
    def alpha(self) -> Distribution:
        """The distribution of what is penalised."""
        parts = tuple(self.distributions[name] for name in self.penalised)
        return parts[0] if len(parts) == 1 else Product(parts, self._names)

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n a"], ImageBeta]:
        """Draws alpha `[n, a]` and beta for `n` images of any size."""
        alpha_key, crop_key, coin_key = jax.random.split(key, 3)
        odds = jnp.array([0.5 * self.flip, self.jitter_probability, self.grey_probability])
        flip, jitter, grey = jax.random.bernoulli(coin_key, odds[None], (n, 3)).T
        crops = None
        if self.crop and "crop" not in self.penalised:
            options = {"scale": self.crop_scale, "ratio": self.crop_ratio}
            crops = geometry.sample_crops(crop_key, n, **options)
        affine_key = jax.random.fold_in(alpha_key, 1)
        keys = {"colour": alpha_key, "crop": crop_key, "affine": affine_key}
        drawn = {name: d.sample(keys[name], n) for name, d in self.distributions.items()}
        alpha = join([drawn.pop(name) for name in self.penalised], n)
        return alpha, ImageBeta(crops, flip, jitter, grey, **drawn)

    def apply(
        self, x: Images, alpha: Float[Array | np.ndarray, "n a"], beta: ImageBeta
    ) -> Float[Array, "n height width c"]:
        """The transformed images as the encoder sees them.

        Args:
          x: 8-bit images, or floats in [0, 1], of any height and width, `[n, h, w, c]`.
          alpha: what is penalised, `[n, a]`.
          beta: the rest of `sample`.

        Returns:
          Normalised images of the transform's size, `[n, height, width, c]`.
        """
        images = self._normalise.check(as_floats(x))
        alpha = check_alpha(alpha, len(images), self._names)
        ends = np.cumsum([len(GROUPS[name]) for name in self.penalised])[:-1].tolist()
        groups = dict(zip(self.penalised, jnp.split(alpha, ends, axis=1), strict=False))
        images = self._place(images, groups.get("crop"), beta)
        moving = groups.get("affine", beta.affine)
        if moving is not None:
            images = Affine(cast(Distribution, self.affine)).apply(images, moving)
        factors = cast(Array, groups.get("colour", beta.colour))
        return self._normalise.apply(self._recolour(images, factors, beta))

    def untransformed(self, x: Images) -> Float[Array, "n height width c"]:
        """The plain images, resized to `whole_size` if need be and normalised, `[n, h, w, c]`."""
        images = self._normalise.check(as_floats(x))
        return self._normalise.apply(geometry.resize(images, self.whole_shape))

    def shifts(self) -> tuple["ImageTransform", dict[str, Transform]]:
        """Colour alone, always, without crop, flip and grey, at each of the paper's strengths.

        Of crops and affine maps that are penalised, each component is moved from the neutral one by
        multiples of its standard deviation.
        """
        regime = dataclasses.replace(
            self,
            crop=False,
            flip=False,
            grey_probability=0.0,
            jitter_probability=float(len(self.mean) == 3),
            affine=None if self.affine is None else [0] * 6,
        )
        shifted: dict[str, Transform] = {}
        if len(self.mean) == 3:
            shifted |= {
                f"strength={s:g}": dataclasses.replace(regime, strength=s) for s in STRENGTHS
            }
        for column, name in enumerate(self._names):
            deviation = np.sqrt(self.alpha.variance[column])
            if name not in colour.NAMES and deviation > 0:
                for shift in deviation * np.array(DEVIATIONS):
                    shifted[f"{name}_shift={shift:+.3g}"] = moved(regime, column, shift=shift)
        return regime, shifted

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for group in self.penalised for name in GROUPS[group])

    def _colour(self) -> Box:
        *factors, turns = self.strength * np.array(self.jitter_widths)
        low = [max(0.0, 1 - factor) for factor in factors]
        return Box([*low, -turns], [*(1 + factor for factor in factors), turns], colour.NAMES)

    def _place(self, images: Array, crop: Array | None, beta: ImageBeta) -> Array:
        if crop is not None:
            shape = self.shape if self.crop else self.whole_shape
            return geometry.horizontal_flip(geometry.crop(images, crop, shape), beta.flip)
        if beta.crops is None:
            return geometry.horizontal_flip(geometry.resize(images, self.whole_shape), beta.flip)
        boxes = geometry.crop_boxes(beta.crops, *images.shape[1:3])
        return geometry.crop_and_resize(images, boxes, beta.flip, self.shape)

    def _recolour(self, images: Array, factors: Array, beta: ImageBeta) -> Array:
        if len(self.mean) != 3:
            return images
        jittered = colour.colour_jitter(images, factors, variant=self.variant)
        images = where(beta.jitter, jittered, images)
        return where(beta.grey, jnp.broadcast_to(colour.greyscale(images), images.shape), images)

    @property
    def _normalise(self) -> Normalise:
        return Normalise(self.mean, self.std)


def _shape(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _distribution(
    affine: Distribution | Sequence[float] | None, penalised: bool
) -> Distribution | None:
    if affine is None:
        return ROTATIONS if penalised else None
    if isinstance(affine, Distribution) and not isinstance(affine, np.ndarray):
        return Affine(affine).alpha
    widths = np.asarray(affine, float)
    return Affine(Box(-widths, widths, warping.NAMES if len(widths) == 6 else None)).alpha
