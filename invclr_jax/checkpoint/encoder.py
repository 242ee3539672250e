"""A trained encoder, and `load_encoder`, which restores it without an optimiser."""

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from invclr_jax.checkpoint.store import Checkpoints
from invclr_jax.evaluation.features import average_features
from invclr_jax.evaluation.progress import Progress
from invclr_jax.models.build import build_encoder
from invclr_jax.transforms.base import Transform
from invclr_jax.transforms.build import build_transform

CPU_PART = 32
"""Inputs that a CPU encodes at a time."""

SHIPPED = pathlib.Path(__file__).parent / "shipped"
"""Folder of the encoders that come with the package, a small workdir each."""


@functools.lru_cache(maxsize=8)
def compiled(module: nn.Module) -> Callable[[PyTree, Array], Array]:
    """The module in eval mode; one function a module, so that other weights compile nothing.

    CPUs encode a few inputs at a time, whose activations fit in the cache: 256 pictures take a
    tenth less time. Batch norm's statistics stay apart from the kernels: folding them in gained
    nothing, as XLA fuses them with the activation that follows.
    """

    def encode(variables: PyTree, inputs: Array):
        n, part = len(inputs), CPU_PART
        if jax.default_backend() != "cpu" or n <= part or n % part:
            return module.apply(variables, inputs)
        parts = inputs.reshape(n // part, part, *inputs.shape[1:])
        z = jax.lax.map(functools.partial(module.apply, variables), parts)
        return z.reshape(n, *z.shape[2:])

    return jax.jit(encode)


@dataclasses.dataclass(frozen=True, eq=False)
class Encoder:
    """A trained encoder, ready to use.

    Attributes:
      config: the configuration it was trained with.
      transform: the transformation it was trained with.
      step: the training step it comes from.
      module: the Flax module.
      variables: its parameters and running statistics.
    """

    config: ml_collections.ConfigDict
    transform: Transform
    step: int
    module: nn.Module
    variables: PyTree

    @functools.cached_property
    def encode_inputs(self):
        """Jitted map from network inputs (as `transform.apply` gives them) to z."""
        return jax.tree_util.Partial(compiled(self.module), self.variables)

    @functools.cached_property
    def _encode(self):
        # Spirograph's x are factors; its rendered images reach the encoder as they are.
        plain = self.config.data.name == "spirograph"
        prepare = (lambda images: images) if plain else self.transform.untransformed
        return jax.jit(lambda images: self.encode_inputs(prepare(images)))

    def encode(self, images: Array | np.ndarray) -> Float[Array, "n d"]:
        """Representations of plain images, [0, 1] floats (or uint8) NHWC; normalises itself."""
        images = jnp.asarray(images)
        if images.ndim != 4 or images.shape[-1] != 3:
            raise ValueError(f"encode takes images [n, height, width, 3], got {images.shape}")
        if images.dtype == jnp.uint8:
            images = images / jnp.float32(255)
        return self._encode(images)

    def represent(
        self,
        x: Array | np.ndarray,
        key: PRNGKeyArray,
        num_samples: int,
        *,
        batch_size: int = 256,
        progress: Progress | None = None,
    ) -> Float[Array, "n d"]:
        """Feature average z^(M) over `num_samples` random transformations of each x.

        Args:
          x: what the transform takes: images, or Spirograph's factors.
          key: of the transformations.
          num_samples: M.
          batch_size: inputs at a time.
          progress: callback with the number of finished rows.
        """
        average = functools.partial(average_features, self.encode_inputs, self.transform)
        return average(x, key, num_samples, batch_size=batch_size, progress=progress)


def load_encoder(
    workdir: str | pathlib.Path, step: int | None = None, *, transform: Transform | None = None
) -> Encoder:
    """Restores the encoder of a run, without building an optimiser.

    Args:
      workdir: the run's folder, or the name of an encoder that comes with the package:
        `spirograph-cpu`.
      step: which checkpoint; None for the newest.
      transform: your own, if the run was trained with it; None for the configuration's.
    """
    if not pathlib.Path(workdir).exists() and (SHIPPED / workdir).is_dir():
        workdir = SHIPPED / workdir
    with contextlib.closing(Checkpoints(workdir)) as checkpoints:
        return _restore_encoder(checkpoints, workdir, step, transform)


def _restore_encoder(checkpoints: Checkpoints, workdir, step, transform) -> Encoder:
    steps = checkpoints.steps()
    if not steps:
        raise FileNotFoundError(
            f"{workdir} holds no whole checkpoint yet: let the run reach its first one"
        )
    if step is not None and step not in steps:
        raise ValueError(f"{workdir} has no checkpoint of step {step}: there are {steps}")
    step = steps[-1] if step is None else step
    config = checkpoints.config(step)
    module = build_encoder(config.model, image_size=config.transform.size)
    template = encoder_template(module, config)
    variables = checkpoints.restore(step, {"encoder": template})["encoder"]
    variables = jax.tree.map(jnp.asarray, variables)
    return Encoder(config, transform or build_transform(config), step, module, variables)


def encoder_template(module: nn.Module, config: ml_collections.ConfigDict) -> PyTree:
    """Shapes of the encoder's variables, without computing any."""
    size = config.transform.size
    dtype = jnp.float64 if config.model.dtype == "float64" else jnp.float32
    images = jax.ShapeDtypeStruct((2, size, size, 3), dtype)
    shapes = jax.eval_shape(module.init, jax.random.key(0), images)
    return {"params": shapes["params"], "batch_stats": shapes["batch_stats"]}
