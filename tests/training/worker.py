"""One process of a small job: WORKDIR METHOD PROCESS COUNT PORT are its arguments."""

import sys

import jax

from tests.training.small import small_config, train_small


def main(workdir, method, process, count, port):
    jax.config.update("jax_enable_x64", True)
    if count > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", count, process)
    overrides = {"model.dtype": "float64", "num_steps": 6, "checkpoint.every_steps": 3}
    overrides |= {"data.num_train": 64, "data.num_test": 16, "log.tensorboard": False}
    overrides |= {"log.every_steps": 1, "data.on_device": process % 2 == 0}
    overrides |= {
        "penalty.estimator": "forward",
        "penalty.weight": 0.0 if method == "moco" else 0.1,
    }
    config = small_config(method=method, **overrides)
    result = train_small(config, workdir)
    print(f"process {process} of {count} finished at step {result.step}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
