"""Our training step as the loop runs it: the real feed, the compiled programs, the whole state."""

import functools

import jax
import ml_collections
import numpy as np

from configs import spirograph
from invclr_jax import config as configuration
from invclr_jax import data, parallel
from invclr_jax.training.loop import describe_data, load_data
from invclr_jax.training.state import Learner, make_learner
from invclr_jax.training.step import compile_steps, create_state, run_key, train_step
from invclr_jax.transforms.base import Transform
from invclr_jax.transforms.build import build_transform

ESTIMATOR = "forward"
"""Less noisy than the paper's: `python -m benchmarks.run --only=estimators`."""

EVERY = 8
"""`penalty.every` of all runs here: it gives a run both programs, with and without the penalty."""

PICTURES = 5000
"""Of the stand-in for CIFAR: noise takes as long as photographs."""


def setting(**overrides) -> ml_collections.ConfigDict:
    """A run like the paper's on Spirograph, with the loss and optimiser of the authors' code.

    Args:
      **overrides: keys of the config with `__` for the dot, `model__width=16`.
    """
    config = spirograph.get_config()
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
      learner: the run's fixed parts.
      state: the current state on the devices.

    Args:
      config: the configuration, see `setting`.
      dataset: the data; None to load what the configuration names.
      transform: instead of the one that the configuration describes.
    """

    def __init__(
        self,
        config: ml_collections.ConfigDict,
        dataset: data.Dataset | None = None,
        transform: Transform | None = None,
    ):
        config = configuration.resolve(config)
        dataset = dataset or load_data(config)
        self.config, self.rows = describe_data(config, dataset), dataset.train.images
        self.learner = learner_of(self.config, len(dataset.train), transform)
        self.state = parallel.replicate(create_state(self.learner))
        self.step_fn = compile_steps(self.learner)
        self._feed = data.make_feed(
            dataset.train, seed=0, batch_size=config.batch_size, num_steps=config.num_steps
        )
        self._batches = iter(self._feed)

    def step(self, penalised: bool):
        """One update by the program with or without the penalty; its metrics."""
        _, batch = next(self._batches)
        # The number serves only to tell which of the two programs is due.
        self.state, metrics = self.step_fn(0 if penalised else 1, self.state, *batch)
        if ("penalty" in metrics) != penalised:
            raise RuntimeError(f"asked for penalised={penalised}, got the other program")
        return metrics

    def compiled(self, penalised: bool):
        """The program of a step, ahead of time, to ask XLA about it."""
        program = jax.pmap(
            functools.partial(train_step, self.learner, penalised),
            axis_name=self.learner.axis,
            in_axes=(0, 0, 0, None),
            donate_argnums=0,
        )
        _, batch = next(self._batches)
        return program.lower(self.state, *batch, run_key(self.learner)).compile()

    def close(self) -> None:
        """Ends the feed's thread."""
        self._feed.close()


def learner_of(
    config: ml_collections.ConfigDict,
    num_rows: int,
    transform: Transform | None = None,
    *,
    axis: parallel.Axis = parallel.AXIS,
) -> Learner:
    """The learner of a described configuration, for all devices or (axis None) for one."""
    return make_learner(
        config,
        transform or build_transform(config),
        steps_per_epoch=data.steps_per_epoch(num_rows, config.batch_size),
        total_steps=config.num_steps,
        axis=axis,
        num_devices=1 if axis is None else jax.device_count(),
    )
