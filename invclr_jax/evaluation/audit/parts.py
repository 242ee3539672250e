"""The parts of a transformation that are varied one at a time, with everything else plain."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from invclr_jax.transforms import geometry
from invclr_jax.transforms.base import Transform, alpha_names, shifts, takes_images
from invclr_jax.transforms.pictures import Images, as_floats
from invclr_jax.transforms.spatial import Crop, random_resized_crops
from invclr_jax.transforms.wrappers import NOTHING

WHOLE = "transform"
"""The part that is the whole transformation, alpha and beta."""


@dataclasses.dataclass(frozen=True)
class Part:
    """What varies.

    Attributes:
      name: of a component of alpha, `crop`, `flip`, or `transform` for everything at once.
      transform: how it is applied.
      column: of alpha, if it is a component.
    """

    name: str
    transform: Transform
    column: int | None = None

    def draw(self, key: PRNGKeyArray, n: int, held: PRNGKeyArray) -> tuple[Array, Any]:
        """alpha and beta of `n` pictures.

        Args:
          key: of what varies.
          n: pictures.
          held: key of beta if a component of alpha varies; the same key gives the same beta.
        """
        if self.column is None:
            return self.transform.sample(key, n)
        values = self.transform.alpha.sample(key, n)[:, self.column]
        return self.at(values, held)

    def at(self, values: Float[Array, " n"], held: PRNGKeyArray) -> tuple[Array, Any]:
        """alpha with a component at given values and the others neutral, and beta."""
        regime, _ = shifts(self.transform)
        neutral = jnp.asarray(np.asarray(regime.alpha.mean), jnp.float32)
        alpha = jnp.broadcast_to(neutral[None], (len(values), len(neutral)))
        beta = regime.sample(held, len(values))[1]
        return alpha.at[:, self.column].set(jnp.asarray(values)), beta


@dataclasses.dataclass(frozen=True)
class Flip:
    """Mirrors pictures with probability 1/2; all of it is beta."""

    alpha = NOTHING

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n 0"], Bool[Array, " n"]]:
        """Draws no alpha, `[n, 0]`, and coins `[n]`."""
        return jnp.zeros((n, 0)), jax.random.bernoulli(key, 0.5, (n,))

    def apply(self, x: Images, alpha: Any, beta: Bool[Array, " n"]) -> Float[Array, "n h w c"]:
        """The pictures, mirrored where the coin says so."""
        return geometry.horizontal_flip(as_floats(x), beta)

    def untransformed(self, x: Images) -> Float[Array, "n h w c"]:
        """The pictures as floats."""
        return as_floats(x)


def components(transform: Transform) -> list[Part]:
    """One part per component of alpha that varies."""
    varies = np.asarray(transform.alpha.variance) > 0
    names = alpha_names(transform)
    return [Part(name, transform, j) for j, name in enumerate(names) if varies[j]]


def parts(transform: Transform, picture: tuple[int, ...]) -> list[Part]:
    """All parts: the whole transformation, components of alpha, crops and flips.

    Args:
      transform: what is audited against.
      picture: height, width and channels of what the encoder sees.
    """
    found = [Part(WHOLE, transform), *components(transform)]
    if takes_images(transform):
        scale = getattr(transform, "crop_scale", geometry.SCALE)
        ratio = getattr(transform, "crop_ratio", geometry.RATIO)
        crop = Crop((picture[0], picture[1]), random_resized_crops(scale, ratio))
        found += [Part("crop", crop), Part("flip", Flip())]
    return found


def changed(part: Part, key: PRNGKeyArray, n: int, held: PRNGKeyArray) -> tuple[Array, Any]:
    """A draw that changes every picture: flips are not left to chance."""
    alpha, beta = part.draw(key, n, held)
    return (alpha, jnp.ones_like(beta)) if isinstance(part.transform, Flip) else (alpha, beta)
