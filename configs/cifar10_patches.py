"""CIFAR-10 in 80 minutes on two CPU cores: EMP-SSL's loss on crops of two sizes, ResNet9, bfloat16.

    invclr train --config=cifar10_patches --config.data.path=DIR --workdir=runs/patches
    invclr evaluate --workdir=runs/patches --protocol=untransformed,average,knn

`--config=cifar10_patches:short` has fewer steps and two thirds of the width: for comparisons.
Ten views of each picture: two crops of 24×24 and eight patches of 16×16 at the scale of the
picture, each at a quarter of the cost of a whole one: docs/cifar.md has the screening. The encoder
averages over pixels, so it can see whole pictures of 32×32 afterwards. Colours are the paper's.
Hardware: two CPU cores with AVX-512 and bfloat16. Expected score: docs/cifar.md.
"""

from invclr_jax.config import default_config


def get_config(size="whole"):
    if size not in ("whole", "short"):
        raise ValueError(f"no size {size!r}: use whole or short")
    config = default_config()
    config.method = "emp"
    config.batch_size, config.num_steps = 100, 3300
    config.model.name, config.model.width, config.model.dtype = "resnet9", 48, "bfloat16"
    config.model.projection_dim = 128
    config.head.options.hidden = (512,)
    config.emp.similarity = 120.0
    config.penalty.weight = 0.0
    config.optimizer.name, config.optimizer.base_learning_rate = "adamw", 0.005
    config.optimizer.weight_decay, config.optimizer.mask = 0.02, "batch_norm_and_bias"
    config.optimizer.schedule = "warmup_cosine"
    config.optimizer.schedule_options = {"warmup_steps": 100}
    config.transform.name, config.transform.size = "image", 24
    config.transform.options = {"crop_scale": (0.3, 1.0), "whole_size": 32}
    config.views.number, config.views.size = 10, 16
    config.views.other_options = {
        "options": {"crop_scale": (0.25, 0.25), "crop_ratio": (1.0, 1.0), "whole_size": 32}
    }
    config.checkpoint.every_steps = 250
    if size == "short":
        config.num_steps, config.model.width = 600, 32
    return config
