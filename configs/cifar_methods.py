"""All methods on CIFAR-10 and CIFAR-100 with ResNet18, as solo-learn and EMP-SSL publish them.

    invclr train --config=cifar_methods:byol --config.data.path=DIR --workdir=runs/byol
    invclr train --config=cifar_methods:vicreg-cifar100-200 --config.data.path=DIR --workdir=runs/v
    invclr evaluate --workdir=runs/byol --protocol=untransformed,average,knn

After the method: the data (cifar10) and the number of epochs (1000; 30 for emp), in any order. The
penalty is off, as in the published runs; --config.penalty.weight=0.1 switches it on.
Hardware: one GPU, batch 256; 195,000 steps for 1000 epochs. Not yet run by us at this scale.
Expected accuracy in %, of others (solo-learn: online probe; lightly: kNN; EMP-SSL: 20 patches):

                   simclr  moco   moco_v3  byol   barlow_twins  vicreg  simsiam  emp
    CIFAR-10, 1000  90.74  92.94   93.10   92.58      92.10      92.07   90.51
    CIFAR-100, 1000 65.78  69.89   68.83   70.46      70.90      68.54   66.04
    CIFAR-10, 200   84.7   83.8            86.9       84.2               81.9
    CIFAR-10, 30    66.3                   68.4                  78.1            93.1
"""

from typing import Any

from invclr_jax.config import default_config

DATA = ("cifar10", "cifar100")
LARS = {"name": "lars", "rule": "clipped", "trust_coefficient": 0.02, "mask": "batch_norm_and_bias"}
METHODS: dict[str, tuple[float, float, dict[str, Any]]] = {
    # learning rate, weight decay, keys of their own
    "simclr": (
        0.4,
        1e-4,
        {
            "contrastive.loss": "nt_xent",
            "contrastive.temperature": 0.2,
            "model.projection_dim": 256,
            "head.options": {"hidden": (2048,)},  # theirs has no batch norm
            "transform.name": "simclr",
        },
    ),
    "moco": (
        0.3,
        1e-4,
        {
            "moco.queue_size": 32_768,
            "moco.momentum": 0.99,  # theirs grows to 0.999
            "contrastive.temperature": 0.2,
            "model.projection_dim": 256,
            "optimizer.name": "sgd",
            "optimizer.mask": "none",
            "transform.name": "moco_v2",
        },
    ),
    "byol": (1.0, 1e-5, {}),
    "moco_v3": (0.3, 1e-6, {}),
    "barlow_twins": (0.3, 1e-4, {}),
    "vicreg": (0.3, 1e-4, {"transform.name": "cifar_vicreg"}),
    "simsiam": (
        0.5,
        1e-5,
        {
            "optimizer.name": "sgd",
            "optimizer.mask": "none",
            "transform.name": "moco_v2",
            "transform.options": {"crop_scale": (0.08, 1.0)},
        },
    ),
    "emp": (
        0.3,
        1e-4,
        {
            "batch_size": 100,
            "num_epochs": 30,
            "optimizer.trust_coefficient": 0.005,
            "transform.name": "emp",
        },
    ),
}


def get_config(name="byol"):
    method, *rest = name.split("-")
    if method not in METHODS:
        raise ValueError(f"no method {method!r}: use one of {', '.join(METHODS)}")
    rate, decay, own = METHODS[method]
    config = default_config()
    config.method, config.model.name = method, "resnet18"
    config.batch_size, config.num_epochs = 256, 1000
    config.penalty.weight = 0.0
    config.optimizer.update(LARS)
    config.optimizer.base_learning_rate, config.optimizer.weight_decay = rate, decay
    config.optimizer.schedule = "warmup_cosine"
    config.transform.name = "cifar_first"
    for key, value in own.items():
        _set(config, key, value)
    if config.transform.name == "cifar_first":
        config.views.second_options = {"name": "cifar_second"}
    for word in rest:
        if word in DATA:
            config.data.name = word
        elif word.isdecimal():
            config.num_epochs = int(word)
        else:
            raise ValueError(f"{word!r} is neither {' nor '.join(DATA)} nor a number of epochs")
    warmup = 0 if method == "emp" else 10 * (50_000 // config.batch_size)
    config.optimizer.schedule_options = {"warmup_steps": warmup}
    return config


def _set(config, key, value):
    section, _, last = key.rpartition(".")
    (config[section] if section else config)[last] = value
