"""MoCo v2 on CIFAR-100 as in the paper: ResNet18 with K=2048, or ResNet50 with K=4096.

    invclr train --config=moco_cifar100:resnet18 \
        --config.data.path=DIR --workdir=runs/moco_r18
    invclr evaluate --workdir=runs/moco_r18 --protocol=untransformed,average

Hardware: the paper used 8 GTX 1080 Ti. Not yet run by us at this scale.
Expected (paper): ResNet18 52.3 % plain, 54.1 % with the penalty, 60.6 % with averaging (M=40) too;
ResNet50 57.9 %, 58.9 %, 64.4 %.
"""

from invclr_jax.configs import cifar100

QUEUE_SIZES = {"resnet18": 2048, "resnet50": 4096}


def get_config(encoder="resnet18"):
    if encoder not in QUEUE_SIZES:
        raise ValueError(f"no MoCo preset for {encoder!r}: use one of {', '.join(QUEUE_SIZES)}")
    config = cifar100.get_config()
    config.method = "moco"
    config.num_epochs = None  # 200 as in MoCo v2, 100 as the authors
    config.model.name = encoder
    config.moco.queue_size = QUEUE_SIZES[encoder]
    config.optimizer.name = "sgd"
    config.optimizer.base_learning_rate = 0.06
    config.optimizer.ramp_epochs = 0.0
    return config
