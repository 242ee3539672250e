"""CIFAR-100 at a size that two CPU cores finish: everything as in configs/cifar10_cpu.py.

    python -m invclr_jax.train --config=configs/cifar100_cpu.py --config.data.path=DIR \
        --workdir=runs/c100_cpu
    python -m invclr_jax.evaluate --workdir=runs/c100_cpu

Hardware: two CPU cores. Expected score: see the README's results table.
"""

from invclr_jax.configs import cifar10_cpu


def get_config():
    config = cifar10_cpu.get_config()
    config.data.name = "cifar100"
    return config
