"""CIFAR-100 at a size that two CPU cores finish: everything as in configs/cifar10_cpu.py.

    invclr train --config=cifar100_cpu --config.data.path=DIR \
        --workdir=runs/c100_cpu
    invclr evaluate --workdir=runs/c100_cpu

Hardware: two CPU cores. Expected score: docs/results.md.
"""

from invclr_jax.configs import cifar10_cpu


def get_config():
    config = cifar10_cpu.get_config()
    config.data.name = "cifar100"
    return config
