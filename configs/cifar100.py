"""CIFAR-100 as in the paper: ResNet50, 1000 epochs, batch 512, lambda 0.1, clip 1.

    invclr train --config=cifar100 --config.data.path=DIR \
        --workdir=runs/c100
    invclr evaluate --workdir=runs/c100

DIR holds cifar-100-binary, cifar-100-python or one of the official archives.
Hardware: the paper used 8 GTX 1080 Ti; 97,000 steps. Not yet run by us at this scale.
Expected (paper, mean of 3 runs): 72.2 % untransformed, 74.94 % with feature averaging (M=100);
without the penalty (--config.penalty.weight=0) 71.3 % and 74.10 %.
"""

from invclr_jax.configs import cifar10


def get_config():
    config = cifar10.get_config()
    config.data.name = "cifar100"
    return config
