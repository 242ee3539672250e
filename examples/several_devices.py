"""Trains on several devices: the same lines as on one.

    python -m examples.several_devices

Here a CPU stands in for two devices, and the flag must be set before JAX starts. On GPUs and TPUs
leave that line out: `ic.train` takes all devices that JAX sees. The batch size is that of all of
them together, and random numbers and batch norm are those of the whole batch, so the result is the
same but for the order in which sums are made.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import tempfile

import jax
import jax.numpy as jnp

import invclr_jax as ic


class LastLine:
    """Keeps the newest metrics."""

    def write(self, step, metrics):
        """Called each `config.log.every_steps`."""
        self.step, self.metrics = step, metrics

    def close(self):
        """Nothing to close."""


def main():
    """Trains for a few steps on all devices."""
    config = ic.load_config("spirograph_cpu")
    config.num_steps, config.log.every_steps = 10, 10
    config.data.num_train, config.data.num_test = 640, 64
    config.batch_norm.scope = "global"  # or "per_device", as most implementations do
    line = LastLine()
    with tempfile.TemporaryDirectory() as workdir:
        result = ic.train(config, workdir, writers=[line])
    leaves = jax.tree.leaves(result.state.params)
    assert all(jnp.isfinite(leaf).all() for leaf in leaves)
    print(f"{jax.device_count()} devices, {config.batch_size} images a step")
    print(f"loss {line.metrics['loss']:.3f} after {result.step} steps")


if __name__ == "__main__":
    main()
