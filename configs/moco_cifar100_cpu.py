"""MoCo v2 on CIFAR-100 at a size that two CPU cores finish: the encoder of configs/cifar100_cpu.py.

    invclr train --config=moco_cifar100_cpu --config.data.path=DIR \
        --workdir=runs/moco_cpu
    invclr evaluate --workdir=runs/moco_cpu --protocol=untransformed,average

Hardware: two CPU cores. Expected score: docs/results.md.
"""

from invclr_jax.configs import cifar100_cpu


def get_config():
    config = cifar100_cpu.get_config()
    config.method = "moco"
    config.moco.queue_size = 1024
    config.optimizer.name = "sgd"
    config.optimizer.base_learning_rate = 0.06
    config.optimizer.ramp_epochs = 0.0
    return config
