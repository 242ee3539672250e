"""A trained encoder, ready to use."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from invclr_jax.data import Pictures
from invclr_jax.evaluation import checks, passes
from invclr_jax.evaluation.features import average_features
from invclr_jax.evaluation.progress import Progress
from invclr_jax.evaluation.sweep import sweep
from invclr_jax.models import network
from invclr_jax.models.function import Function
from invclr_jax.transforms.base import Transform, takes_images
from invclr_jax.transforms.normalise import without_normalisation

CPU_PART = 32
"""Inputs that a CPU encodes at a time."""


@functools.lru_cache(maxsize=8)
def compiled(module: nn.Module) -> Callable[[PyTree, Array], Array]:
    """The module in eval mode; one function a module, so that other weights compile nothing.

    CPUs encode a few inputs at a time, whose activations fit in the cache: 256 pictures take a
    tenth less time. Batch norm's statistics stay apart from the kernels: folding them in gained
    nothing, as XLA fuses them with the activation that follows.
    """

    def whole(variables: PyTree, inputs: Array):
        return network.evaluate(module, variables, inputs)

    def in_parts(variables: PyTree, inputs: Array):
        count = -(-len(inputs) // CPU_PART)
        part = -(-len(inputs) // count)
        padding = ((0, count * part - len(inputs)), *[(0, 0)] * (inputs.ndim - 1))
        parts = jnp.pad(inputs, padding).reshape(count, part, *inputs.shape[1:])
        z = jax.lax.map(functools.partial(whole, variables), parts)
        return z.reshape(count * part, *z.shape[2:])[: len(inputs)]

    def encode(variables: PyTree, inputs: Array):
        if len(inputs) <= CPU_PART:
            return whole(variables, inputs)
        return jax.lax.platform_dependent(variables, inputs, cpu=in_parts, default=whole)

    return jax.jit(encode)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Encoder:
    """A trained encoder, ready to use.

    Attributes:
      module: the Flax module.
      variables: its parameters and running statistics.
      transform: the transformation it was trained with.
      config: the configuration it was trained with.
      step: the training step it comes from.
    """

    module: nn.Module
    variables: PyTree
    transform: Transform
    config: ml_collections.ConfigDict = dataclasses.field(default_factory=ml_collections.ConfigDict)
    step: int = 0

    @classmethod
    def from_function(cls, encode: Callable[[Any], Any], transform: Transform) -> "Encoder":
        """An encoder around any function: `represent`, `evaluate` and `audit` work with it.

        Args:
          encode: images `[n, h, w, channels]`, floats in [0, 1], -> features `[n, d]`, for any n.
            A JAX function, or plain Python that takes and returns NumPy arrays; it normalises its
            images itself.
          transform: what changes the images. If it normalises them, that part is left out.
        """
        if not callable(encode):
            raise ValueError(
                f"encode is a {type(encode).__name__}: give a function images -> features [n, d]"
            )
        if not isinstance(transform, Transform):
            raise ValueError(
                f"transform is a {type(transform).__name__}: it needs alpha, sample, apply and "
                "untransformed"
            )
        plain = without_normalisation(transform)
        return cls(module=Function(encode), variables={}, transform=plain)

    @functools.cached_property
    def encode_inputs(self) -> Callable[[Array], Array]:
        """Jitted map from network inputs (as `transform.apply` gives them) to z."""
        try:
            apply = compiled(self.module)
        except TypeError:  # a module that cannot be hashed: compiled for this encoder alone
            apply = compiled.__wrapped__(self.module)
        return jax.tree_util.Partial(apply, self.variables)

    def encode(
        self,
        images: Array | np.ndarray | Pictures,
        *,
        batch_size: int | None = None,
        progress: Progress | None = None,
    ) -> Float[Array, "n d"]:
        """Representations of plain images, [0, 1] floats (or uint8) NHWC; normalises itself.

        Args:
          images: `[n, h, w, channels]`.
          batch_size: images that each device takes at a time; None for all of them at once, on
            one device, which may be part of a program of your own.
          progress: callback with the number of finished rows.
        """
        if images.ndim != 4:
            raise ValueError(f"encode takes images [n, h, w, channels], got shape {images.shape}")
        # A transform of factors, not pictures, renders what the encoder sees: images are that.
        plain = self.transform.untransformed if takes_images(self.transform) else _as_it_is
        if batch_size is None:
            options = {"untransformed": _Scaled(plain)}
            images = images[:] if isinstance(images, Pictures) else images
            return _finite(passes.plain(self.encode_inputs, jnp.asarray(images), **options))
        z = sweep(
            passes.plain,
            {"encode": self.encode_inputs},
            images,
            batch_size,
            untransformed=_Scaled(plain),
            progress=progress,
        )
        return _finite(jnp.asarray(z))

    def represent(
        self,
        x: Array | np.ndarray | Pictures,
        key: PRNGKeyArray,
        num_samples: int,
        *,
        batch_size: int = 256,
        progress: Progress | None = None,
        first: int = 0,
    ) -> Float[Array, "n d"]:
        """Feature average z^(M) over `num_samples` random transformations of each x.

        Args:
          x: what the transform takes: images, or Spirograph's factors.
          key: of the transformations; those of the i-th x depend on key and i alone.
          num_samples: M.
          batch_size: inputs that each device takes at a time; the result does not depend on it.
          progress: callback with the number of finished rows.
          first: i of the first x, where x is a part of something larger.
        """
        z = average_features(
            self.encode_inputs,
            self.transform,
            x,
            key,
            num_samples,
            batch_size=batch_size,
            progress=progress,
            first=first,
        )
        return _finite(jnp.asarray(z))


@dataclasses.dataclass(frozen=True)
class _Scaled:
    """8-bit images become floats in [0, 1] before what follows; equal ones share programs."""

    then: Callable[[Any], Any]

    def __call__(self, images: Array) -> Array:
        return self.then(images / jnp.float32(255) if images.dtype == jnp.uint8 else images)


def _as_it_is(images: Any) -> Any:
    return images


def _finite(z: Array) -> Array:
    if not isinstance(z, jax.core.Tracer):
        checks.finite(z, "features")
    return z
