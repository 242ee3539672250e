"""`adapt`: makes any encoder more invariant without training it again."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from invclr_jax.checkpoint import Encoder
from invclr_jax.data import Dataset
from invclr_jax.evaluation.audit.encoding import Encoding
from invclr_jax.evaluation.audit.run import check_images
from invclr_jax.models.function import Function
from invclr_jax.training.adapter import Adapter, AdapterSettings, fit
from invclr_jax.transforms.base import Transform
from invclr_jax.transforms.normalise import without_normalisation


def adapt(
    encode: Callable[[Any], Any] | Encoder,
    dataset: Dataset | Any,
    transform: Transform,
    *,
    num_views: int = 4,
    limit: int | None = None,
    settings: AdapterSettings | None = None,
    batch_size: int = 250,
) -> Encoder:
    """A small residual network after a frozen encoder, trained to be invariant.

    Args:
      encode: a function from pictures in [0, 1] to features, see `Encoder.from_function`, or an
        encoder.
      dataset: pictures to learn from; labels are not used. A data set's training part, or an array.
      transform: what to be invariant to. If it normalises pictures, that part is left out.
      num_views: transformations of each picture, encoded once.
      limit: so many random pictures at most; None for all.
      settings: of the adapter; None for the default.
      batch_size: pictures encoded at a time.

    Returns:
      The encoder followed by its adapter.
    """
    if num_views < 1:
        raise ValueError(f"num_views is {num_views}: use 1 or more")
    settings = settings or AdapterSettings()
    x = check_images(dataset.train.array if isinstance(dataset, Dataset) else dataset)
    x = x[np.random.default_rng(settings.seed).permutation(len(x))[:limit]]
    transform = without_normalisation(transform)
    function = encode.encode if isinstance(encode, Encoder) else encode
    encoding = Encoding(function, transform.untransformed(jnp.asarray(x[:2])), batch_size)
    clean, views = cached_features(encoding, x, transform, num_views, settings.seed)
    first = function if encoding.is_traced else functools.partial(Function(function).apply, {})
    adapter, variables = fit(jnp.asarray(clean), jnp.asarray(views), settings)
    return Encoder.from_function(Adapted(first, adapter, variables), transform)


def cached_features(
    encoding: Encoding, x: np.ndarray, transform: Transform, num_views: int, seed: int
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n v d"]]:
    """Features of plain pictures and of several transformations of each.

    Args:
      encoding: the encoder.
      x: pictures.
      transform: what changes them.
      num_views: how many times.
      seed: of the transformations.
    """
    keys = jax.random.split(jax.random.key(seed), num_views)
    views = [encoding.transformed(transform, x, *transform.sample(key, len(x))) for key in keys]
    return encoding.plain(transform, x), np.stack(views, axis=1)


class Adapted:
    """A JAX function images -> adapted features.

    Args:
      first: images -> features, which JAX can trace.
      adapter: what follows.
      variables: its weights.
    """

    def __init__(self, first: Callable, adapter: Adapter, variables: PyTree):
        self.first, self.adapter, self.variables = first, adapter, variables

    def __call__(self, images: Float[Array, "n h w c"]) -> Float[Array, "n d"]:
        """The adapted features of images."""
        return self.after(self.first(images))

    def after(self, z: Any) -> Float[Array, "n d"]:
        """Adapted features of features."""
        return jnp.asarray(self.adapter.apply(self.variables, jnp.asarray(z)))
