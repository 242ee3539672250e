"""CIFAR-10 at a size that two CPU cores finish: 16×16 crops, ResNet10 with 8 base channels.

    invclr train --config=cifar10_cpu --config.data.path=DIR \
        --workdir=runs/c10_cpu
    invclr evaluate --workdir=runs/c10_cpu

Hardware: two CPU cores. Expected score: docs/results.md.
"""

from invclr_jax.configs import cifar10


def get_config():
    config = cifar10.get_config()
    config.batch_size = 128
    config.num_epochs = None
    config.num_steps = 1000
    config.model.name = "resnet10"
    config.model.width = 8
    config.transform.size = 16
    config.optimizer.ramp_epochs = 1.0
    config.optimizer.base_learning_rate = 1.0
    config.penalty.estimator = "forward"
    config.checkpoint.every_steps = 500
    return config
