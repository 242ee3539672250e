"""Spirograph as in the paper: ResNet18, 50 epochs, lambda 0.01.

    invclr train --config=spirograph --workdir=runs/spirograph
    invclr evaluate --workdir=runs/spirograph

Hardware: the paper used 8 GTX 1080 Ti; 9,750 steps. Not yet run by us at this scale.
Expected (paper, mean of 3 runs): MSE of m, b, sigma, f_r = 5.07e-4, 7.36e-3, 5.27e-5, 2.8e-6;
without the penalty (--config.penalty.weight=0) 6.77e-4, 1.12e-2, 9.14e-5, 2.32e-5.
The published table very probably belongs to --config.transform.normalise=row.
"""

from invclr_jax.config import default_config


def get_config():
    config = default_config()
    config.num_epochs = 50
    config.model.name = "resnet18"
    config.penalty.weight = 0.01
    config.penalty.clip = 1000.0
    config.data.name = "spirograph"
    return config
