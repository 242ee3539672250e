"""A learner small enough to compile in seconds."""

import dataclasses

import numpy as np

from invclr_jax import config as configuration
from invclr_jax.models.heads import MoCoHead, ProjectionHead
from invclr_jax.models.resnet import BasicBlock, ResNet
from invclr_jax.training.state import make_learner
from invclr_jax.transforms.build import build_transform


def small_config(data="spirograph", method="simclr", **overrides):
    config = configuration.default_config()
    config.method, config.data.name, config.batch_size = method, data, 16
    config.num_steps, config.penalty.weight, config.penalty.num_samples = 20, 0.1, 3
    config.model.name, config.model.width, config.model.projection_dim = "resnet18", 4, 6
    config.model.conv = "xla"  # compiles faster
    config.moco.queue_size, config.optimizer.base_learning_rate = 32, 0.5
    config.optimizer.ramp_epochs = 0.0
    config.transform.size = 8
    if data != "spirograph":
        config.transform.mean, config.transform.std = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)
    config.update_from_flattened_dict(overrides)
    return configuration.resolve(config)


def small_learner(config, *, axis=None, num_devices=1, num_classes=None):
    """Like `make_learner`, with a two-stage encoder instead of the whole ResNet."""
    learner = make_learner(
        config,
        build_transform(config),
        steps_per_epoch=10,
        total_steps=20,
        axis=axis,
        num_devices=num_devices,
        num_classes=num_classes,
    )
    whole = learner.encoder
    shared = {"dtype": whole.dtype, "axis": whole.axis, "groups": whole.groups}
    encoder = ResNet(BasicBlock, (1, 1), width=config.model.width, conv=config.model.conv, **shared)
    dim = config.model.projection_dim
    head = MoCoHead(dim, whole.dtype) if config.method == "moco" else ProjectionHead(dim, **shared)
    return dataclasses.replace(learner, encoder=encoder, head=head)


def rows(data="spirograph", n=40, seed=0):
    """A training set of `n` rows and integer labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n).astype(np.int32)
    if data == "spirograph":
        low, high = np.array([2, 0.1, 0.25, 0.4]), np.array([5, 1.1, 1.0, 1.0])
        return {
            "image": (low + (high - low) * rng.random((n, 4))).astype(np.float32),
            "label": labels,
        }
    return {"image": rng.integers(0, 256, (n, 8, 8, 3), dtype=np.uint8), "label": labels}
