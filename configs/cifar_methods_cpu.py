"""All methods on CIFAR-10 at a size that two CPU cores finish: the encoder of cifar10_cpu.py.

    invclr train --config=cifar_methods_cpu:byol --config.data.path=DIR --workdir=runs/byol_cpu
    invclr evaluate --workdir=runs/byol_cpu --protocol=untransformed,average,knn

Every method sees 256,000 views in the paper's transformation, of 128 pictures in a step; emp sees
as many patches, 20 of each of 50 pictures. All are trained with AdamW at the same learning rate,
because the published ones belong to runs a hundred times as long. The heads shrink with the
encoder, and weights of sums over pairs of components grow in return.
Words after the method are those of configs/cifar_methods.py.
Hardware: one CPU core, one to three minutes. Expected score: docs/methods.md.
"""

from invclr_jax.configs import cifar_methods

NARROWER = 2048 // 64
"""How many times fewer components projections have than the published ones."""


def get_config(name="byol"):
    config = cifar_methods.get_config(name)
    config.batch_size, config.num_epochs, config.num_steps = 128, None, 1000
    config.model.name, config.model.width, config.model.projection_dim = "resnet10", 8, 64
    config.transform.name, config.transform.size = "image", 16
    config.views.second_options = {}
    config.optimizer.name, config.optimizer.base_learning_rate = "adamw", 0.004
    config.optimizer.weight_decay, config.optimizer.mask = 0.02, "batch_norm_and_bias"
    config.optimizer.schedule_options = {"warmup_steps": 100}
    if config.method == "emp":
        config.batch_size, config.num_steps, config.emp.similarity = 50, 256, 100.0
        config.optimizer.schedule_options = {"warmup_steps": 25}
        patches = {"crop_scale": (0.25, 0.25), "crop_ratio": (1.0, 1.0), "whole_size": 32}
        config.transform.options = patches
    else:
        config.transform.options = {}
    if config.method == "moco":
        config.moco.queue_size = 4096
    else:
        config.head.options.hidden = (256,)
    if "predictor_hidden" in config.get(config.method, {}):
        config[config.method].predictor_hidden = 128
    config.barlow_twins.off_diagonal *= NARROWER
    config.vicreg.covariance *= NARROWER
    config.checkpoint.every_steps = config.num_steps
    return config
