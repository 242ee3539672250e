"""CIFAR-10 as in the paper: ResNet50, 1000 epochs, batch 512, lambda 0.1, clip 1.

    invclr train --config=cifar10 --config.data.path=DIR --workdir=runs/c10
    invclr evaluate --workdir=runs/c10

DIR holds cifar-10-batches-bin, cifar-10-batches-py or one of the official archives.
Hardware: the paper used 8 GTX 1080 Ti; 97,000 steps. Not yet run by us at this scale.
Expected (paper, mean of 3 runs): 93.35 % untransformed, 94.83 % with feature averaging (M=100);
without the penalty (--config.penalty.weight=0) 93.0 % and 94.60 %.
"""

from invclr_jax.config import default_config


def get_config():
    config = default_config()
    config.num_epochs = 1000
    config.data.name = "cifar10"
    return config
