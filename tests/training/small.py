"""A recipe small enough to compile in seconds."""

import numpy as np

from invclr_jax import api
from invclr_jax import config as configuration
from invclr_jax.config.build import Own
from invclr_jax.data import Dataset, Split
from invclr_jax.models import dtypes
from invclr_jax.models.resnet import BasicBlock, ResNet

STEPS_PER_EPOCH = 10


def small_config(data="spirograph", method="simclr", **overrides):
    config = configuration.default_config()
    config.method, config.data.name, config.batch_size = method, data, 16
    config.num_steps, config.penalty.weight, config.penalty.num_samples = 20, 0.1, 3
    config.model.name, config.model.width, config.model.projection_dim = "resnet18", 4, 6
    config.model.conv = "xla"  # compiles faster
    config.moco.queue_size, config.optimizer.base_learning_rate = 32, 0.5
    config.optimizer.ramp_epochs = 0.0
    config.transform.size = 8
    if method not in ("simclr", "moco"):
        config.head.options.hidden = (8,)
        config.views.number = 4 if method == "emp" else 2
        if "predictor_hidden" in config[method]:
            config[method].predictor_hidden = 8
    if data != "spirograph":
        config.transform.mean, config.transform.std = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)
    config.update_from_flattened_dict(overrides)
    return configuration.resolve(config)


def small_encoder(config):
    """Two stages instead of the whole ResNet."""
    options = {name: config.model[name] for name in ("conv", "precision")}
    options["dtype"] = dtypes.parse(config.model.dtype)
    return ResNet(BasicBlock, (1, 1), width=config.model.width, **options)


def small_recipe(config, *, axis=None, num_devices=1, dataset=None):
    """What `from_config` makes, with a small encoder, for an epoch of ten steps."""
    dataset = dataset or small_data(config.data.name, STEPS_PER_EPOCH * config.batch_size)
    config = configuration.describe(config, dataset)
    own = Own(encoder=small_encoder(config))
    return configuration.from_config(config, dataset, own, axis=axis, num_devices=num_devices)


def train_small(config, workdir, **options):
    """`invclr_jax.train` with a small encoder."""
    return api.train(config, workdir, encoder=small_encoder(config), **options)


def small_data(data="spirograph", n=40, seed=0):
    """A training set of `n` rows and three classes."""
    table = rows(data, n, seed)
    renders = data == "spirograph"
    return Dataset(
        data,
        Split(table["image"], table["label"]),
        None,
        num_classes=3,
        transform="spirograph" if renders else "image",
    )


def rows(data="spirograph", n=40, seed=0):
    """What a step gathers from: `n` rows and integer labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n).astype(np.int32)
    if data == "spirograph":
        low, high = np.array([2, 0.1, 0.25, 0.4]), np.array([5, 1.1, 1.0, 1.0])
        return {
            "image": (low + (high - low) * rng.random((n, 4))).astype(np.float32),
            "label": labels,
        }
    return {"image": rng.integers(0, 256, (n, 8, 8, 3), dtype=np.uint8), "label": labels}
