"""Spirograph at a size that two CPU cores train to the end: 16×16 pictures, a small ResNet10.

    invclr train --config=spirograph_cpu --workdir=runs/spirograph_cpu
    invclr evaluate --workdir=runs/spirograph_cpu

Hardware: two CPU cores, a few minutes. `make demo` trains it with the penalty on and off.
Expected score: docs/results.md.
"""

from invclr_jax.configs import spirograph


def get_config():
    config = spirograph.get_config()
    config.batch_size = 64
    config.num_epochs = None
    config.num_steps = 2000
    config.model.name = "resnet10"
    config.model.width = 8
    config.transform.size = 16
    config.data.num_train = 20_000
    config.data.num_test = 5_000
    config.optimizer.ramp_epochs = 1.0
    config.optimizer.base_learning_rate = 1.0
    config.penalty.estimator = "forward"
    config.checkpoint.every_steps = 500
    return config
