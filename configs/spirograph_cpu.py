"""Spirograph at a size that two CPU cores train to the end: 16×16 pictures, a small ResNet10.

    invclr train --config=spirograph_cpu --workdir=runs/spirograph_cpu
    invclr evaluate --workdir=runs/spirograph_cpu

`--config=spirograph_cpu:32` has the paper's pictures of 32×32, a ResNet18 with 16 base channels and
twice the batch, as its representation has twice the size.

Hardware: two CPU cores, a few minutes. `make demo` trains it with the penalty on and off.
Expected score: docs/results.md.
"""

from invclr_jax.configs import spirograph


def get_config(size="16"):
    if size not in ("16", "32"):
        raise ValueError(f"no size {size!r}: use 16 or 32")
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
    if size == "32":
        config.batch_size = 128
        config.model.name, config.model.width = "resnet18", 16
        config.transform.size = 32
        config.data.num_train, config.data.num_test = 100_000, 20_000
    return config
