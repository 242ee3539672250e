"""All methods on CIFAR-10 at a size that two CPU cores finish: the encoder of cifar10_cpu.py.

    invclr train --config=cifar_methods_cpu:byol --config.data.path=DIR --workdir=runs/byol_cpu
    invclr evaluate --workdir=runs/byol_cpu --protocol=untransformed,average,knn

The heads shrink with the encoder. Words after the method are those of configs/cifar_methods.py.
Hardware: two CPU cores. Expected score: none yet, these settings have not been tuned or run to the
end. emp starts from a measurement: AdamW at 0.002 with similarity 100 learns where LARS does not.
"""

from invclr_jax.configs import cifar_methods


def get_config(name="byol"):
    config = cifar_methods.get_config(name)
    config.batch_size, config.num_epochs, config.num_steps = 128, None, 1000
    config.model.name, config.model.width, config.model.projection_dim = "resnet10", 8, 64
    config.head.options.hidden = (256,)
    config.transform.size = 16
    config.optimizer.schedule_options = {"warmup_steps": 100}
    if "predictor_hidden" in config.get(config.method, {}):
        config[config.method].predictor_hidden = 128
    if config.method == "emp":
        config.batch_size, config.emp.similarity = 50, 100.0
        config.optimizer.name, config.optimizer.base_learning_rate = "adamw", 0.002
    config.checkpoint.every_steps = 500
    return config
