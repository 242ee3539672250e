"""Our training step as the loop runs it: the real feed, the compiled programs, the whole state."""

import ml_collections
import numpy as np

from invclr_jax import config as configuration
from invclr_jax import data, parallel
from invclr_jax.config.build import Own
from invclr_jax.training.step import compile_steps, create_state, pmapped_step
from invclr_jax.transforms.base import Transform

ESTIMATOR = "forward"
"""Less noisy than the paper's: `python -m benchmarks.run --only=estimators`."""

EVERY = 8
"""`penalty.every` of all runs here: it gives a run both programs, with and without the penalty."""

PICTURES = 5000
"""Rows of the stand-in for CIFAR: noise takes as long as photographs."""


def setting(**overrides) -> ml_collections.ConfigDict:
    """A run like the paper's on Spirograph, with the loss and optimiser of the authors' code.

    Args:
      **overrides: keys of the config with `__` for the dot, as in `model__width=16`.
    """
    config = configuration.load("spirograph")
    config.num_epochs, config.num_steps = None, 1_000_000
    config.batch_size = 64
    config.contrastive.loss, config.optimizer.rule = "nt_xent", "torchlars"
    # Small: the reference has no schedule, and neither side may diverge while it is timed.
    config.optimizer.base_learning_rate, config.optimizer.ramp_epochs = 0.1, 0.0
    config.penalty.estimator, config.penalty.every = ESTIMATOR, EVERY
    flat = {key.replace("__", "."): value for key, value in overrides.items()}
    config.update_from_flattened_dict(flat)
    return config


def pictures(size: int = 32, classes: int = 10) -> data.Dataset:
    """Noise with the shape of CIFAR."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (PICTURES, size, size, 3), dtype=np.uint8)
    split = data.Split(images, np.arange(PICTURES, dtype=np.int32) % classes)
    return data.Dataset("arrays", split, None, classes, (0.5,) * 3, (0.29,) * 3)


class Run:
    """A run that takes its steps one by one.

    Attributes:
      config: resolved, with the data's size and statistics.
      rows: the training set's images or factors.
      recipe: the run's fixed parts.
      state: the current state on the devices.

    Args:
      config: the configuration, see `setting`.
      dataset: the data; None to load what the configuration names.
      transform: used instead of the one that the configuration describes.
    """

    def __init__(
        self,
        config: ml_collections.ConfigDict,
        dataset: data.Dataset | None = None,
        transform: Transform | None = None,
    ):
        config = configuration.resolve(config)
        dataset = dataset or configuration.load_data(config)
        self.config, self.rows = configuration.describe(config, dataset), dataset.train.array
        self.recipe = configuration.from_config(self.config, dataset, Own(transform=transform))
        self.state = parallel.replicate(create_state(self.recipe))
        self.step_fn = compile_steps(self.recipe)
        self._feed = data.make_feed(
            dataset.train, seed=0, batch_size=config.batch_size, num_steps=config.num_steps
        )
        self._batches = iter(self._feed)

    def step(self, penalised: bool):
        """One update with the penalised or the plain program; returns its metrics."""
        _, batch = next(self._batches)
        # The number only decides which of the two programs runs.
        self.state, metrics = self.step_fn(0 if penalised else 1, self.state, *batch)
        if ("penalty" in metrics) != penalised:
            raise RuntimeError(f"asked for penalised={penalised}, got the other program")
        return metrics

    def compiled(self, penalised: bool):
        """The program of a step, compiled ahead of time, to ask XLA about it."""
        _, batch = next(self._batches)
        program = pmapped_step(self.recipe, penalised)
        return program.lower(self.state, *batch, self.recipe.key).compile()

    def close(self) -> None:
        """Ends the feed's thread."""
        self._feed.close()
