"""What a run carries from step to step, and what is fixed while it runs."""

import dataclasses
from typing import Any

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
import ml_collections
import optax
from jaxtyping import Array, PRNGKeyArray, PyTree

from invclr_jax import parallel
from invclr_jax.models.build import build_encoder
from invclr_jax.models.heads import MoCoHead, ProjectionHead
from invclr_jax.training import optimizer
from invclr_jax.transforms.base import Transform


@flax.struct.dataclass
class TrainState:
    """Everything that changes in training; the same on every device.

    Attributes:
      step: updates made so far.
      params: `{"encoder": ..., "head": ...}`.
      batch_stats: running statistics of batch norm, same layout.
      opt_state: the optimiser's.
      method: what the method keeps (MoCo: key encoder and queue); empty for SimCLR.
      probe: the online probe's parameters; empty if it is off.
    """

    step: Any
    params: PyTree
    batch_stats: PyTree
    opt_state: PyTree
    method: PyTree
    probe: PyTree


@dataclasses.dataclass(frozen=True)
class Learner:
    """The parts of a run that stay as they are: modules, transformation, optimiser, settings.

    Attributes:
      config: resolved configuration.
      encoder: f, images to representations.
      head: g, representations to projections.
      transform: t, with the distribution of alpha.
      tx: the optimiser.
      penalty_weight: lambda, a function of the step.
      axis: mapped device axis, None for one device without `pmap`.
      num_classes: classes of the online probe; None where targets are numbers.
    """

    config: ml_collections.ConfigDict
    encoder: nn.Module
    head: nn.Module
    transform: Transform
    tx: optax.GradientTransformation
    penalty_weight: optax.Schedule
    axis: parallel.Axis = None
    num_classes: int | None = None

    def encode(self, params: PyTree, batch_stats: PyTree, images: Array) -> tuple[Array, PyTree]:
        """Representations in train mode and the updated running statistics of the encoder."""
        return _train_mode(self.encoder, params["encoder"], batch_stats["encoder"], images)

    def project(self, params: PyTree, batch_stats: PyTree, z: Array) -> tuple[Array, PyTree]:
        """Projections in train mode and the updated running statistics of the head."""
        return _train_mode(self.head, params["head"], batch_stats["head"], z)


def _train_mode(module, params, batch_stats, inputs):
    variables = {"params": params, "batch_stats": batch_stats}
    outputs, updated = module.apply(variables, inputs, train=True, mutable=["batch_stats"])
    return outputs, updated.get("batch_stats", batch_stats)


def make_learner(
    config: ml_collections.ConfigDict,
    transform: Transform,
    *,
    steps_per_epoch: int,
    total_steps: int,
    axis: parallel.Axis = None,
    num_devices: int = 1,
    num_classes: int | None = None,
) -> Learner:
    """Builds modules and optimiser from a resolved configuration."""
    schedule = optimizer.step_schedule(
        optimizer.learning_rate(
            config.optimizer.base_learning_rate,
            total_steps / steps_per_epoch,
            config.optimizer.ramp_epochs,
        ),
        steps_per_epoch,
        config.optimizer.schedule,
    )
    encoder = build_encoder(
        config.model,
        _chunk_norm(config),
        image_size=config.transform.size,
        axis=axis,
        num_devices=num_devices,
        batch_size=config.batch_size // config.chunks,
    )
    return Learner(
        config=config,
        encoder=encoder,
        head=_build_head(config, encoder),
        transform=transform,
        tx=optimizer.make_optimizer(config.optimizer, schedule),
        penalty_weight=_penalty_weight(config.penalty, steps_per_epoch),
        axis=axis,
        num_classes=num_classes,
    )


def _penalty_weight(options: ml_collections.ConfigDict, steps_per_epoch: int) -> optax.Schedule:
    """Lambda by the step: the weight, or a straight line up to it."""
    ramp = options.ramp_epochs * steps_per_epoch
    return lambda step: options.weight * jnp.minimum(step / ramp, 1) if ramp else options.weight


def _chunk_norm(config: ml_collections.ConfigDict) -> ml_collections.ConfigDict:
    """Batch norm as one chunk sees it: groups of the batch become groups of the chunk."""
    groups = max(config.batch_norm.groups // config.chunks, 1)
    return ml_collections.ConfigDict({"scope": config.batch_norm.scope, "groups": groups})


def _build_head(config: ml_collections.ConfigDict, encoder: nn.Module) -> nn.Module:
    options = {"output_dim": config.model.projection_dim, "dtype": encoder.dtype}
    if config.method == "moco":
        return MoCoHead(**options)
    return ProjectionHead(**options, axis=encoder.axis, groups=encoder.groups)


def param_dtype(config: ml_collections.ConfigDict) -> jnp.dtype:
    """float32, also under bfloat16 arithmetic; float64 only where that was asked for."""
    return jnp.dtype("float64" if config.model.dtype == "float64" else "float32")


def init_network(learner: Learner, key: PRNGKeyArray) -> tuple[PyTree, PyTree]:
    """Fresh parameters and running statistics of encoder and head."""
    encoder_key, head_key = jax.random.split(key)
    dtype = param_dtype(learner.config)
    size = learner.config.transform.size
    images = jnp.zeros((2, size, size, 3), dtype)
    encoder = learner.encoder.init(encoder_key, images)
    z = jnp.zeros((2, learner.encoder.representation_dim), dtype)
    head = learner.head.init(head_key, z)
    cast = lambda tree: jax.tree.map(lambda leaf: leaf.astype(dtype), tree)  # noqa: E731
    params = cast({"encoder": encoder["params"], "head": head["params"]})
    batch_stats = cast(
        {"encoder": encoder["batch_stats"], "head": head.get("batch_stats", {})},
    )
    return params, batch_stats
