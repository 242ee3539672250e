"""A run's folder with a fresh, untrained ResNet10, made without training."""

import jax
import numpy as np

from invclr_jax import config as configuration
from invclr_jax import data
from invclr_jax.checkpoint import Checkpoints, stored
from invclr_jax.data.dataset import Split


def tiny_config(name="spirograph", **overrides):
    config = configuration.default_config()
    config.data.name, config.model.name, config.model.width = name, "resnet10", 4
    config.transform.size, config.batch_size, config.num_steps = 8, 16, 4
    config.data.num_train, config.data.num_test = 96, 48
    config.update_from_flattened_dict(overrides)
    return configuration.resolve(config)


def tiny_images(num_classes=3, seed=0):
    """Pictures of random colours with a class that shows, `[n, 8, 8, 3]`."""
    rng = np.random.default_rng(seed)

    def split(n):
        labels = np.arange(n, dtype=np.int32) % num_classes
        noise = rng.integers(0, 120, (n, 8, 8, 3), dtype=np.uint8)
        noise[..., 0] += (labels * 60)[:, None, None].astype(np.uint8)
        return Split(noise, labels)

    return data.Dataset(
        "arrays", split(96), split(48), num_classes, (0.4, 0.3, 0.3), (0.2, 0.2, 0.2)
    )


def make_run(workdir, config, dataset):
    """Saves a fresh encoder as the checkpoint of step 4; returns its variables."""
    config = configuration.describe(config, dataset)
    module = stored.encoder_of(config, trust=())
    images = np.zeros((2, 8, 8, 3), np.float32)
    variables = jax.device_get(jax.jit(module.init)(jax.random.key(3), images))
    jax.tree.map(lambda shape, array: None, stored.variables_of(module, config), dict(variables))
    checkpoints = Checkpoints(workdir, keep=1)
    checkpoints.save(4, dict(variables), {"step": np.int32(4)}, config.to_dict())
    checkpoints.close()
    return variables
