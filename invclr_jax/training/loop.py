"""The training loop: resume, step, log, checkpoint, stop cleanly."""

import contextlib
import dataclasses
import math
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping

import jax
import ml_collections
import numpy as np

from invclr_jax import config as configuration
from invclr_jax import data, parallel
from invclr_jax.checkpoint import Checkpoints, Encoder
from invclr_jax.training.interruption import stop_requests
from invclr_jax.training.logging import Log
from invclr_jax.training.restore import encoder_of, parts, restore_or_create
from invclr_jax.training.state import Learner, TrainState, make_learner
from invclr_jax.training.step import compile_steps
from invclr_jax.transforms.base import Transform
from invclr_jax.transforms.build import build_transform

CONFIG_FILE = "config.json"

Evaluate = Callable[[Encoder, data.Dataset], Mapping[str, float]]


class NonFiniteError(FloatingPointError):
    """Training met NaN or infinity."""


@dataclasses.dataclass(frozen=True)
class Result:
    """How a run ended.

    Attributes:
      state: the last state, one copy of every array.
      step: updates made.
      signal: number of the signal that stopped the run, None if it finished.
    """

    state: TrainState
    step: int
    signal: int | None = None


def train(
    config: ml_collections.ConfigDict,
    workdir: str | pathlib.Path,
    *,
    dataset: data.Dataset | None = None,
    transform: Transform | None = None,
    evaluate: Evaluate | None = None,
    allow_changed_config: bool = False,
) -> Result:
    """Trains an encoder, going on from the newest checkpoint in `workdir` if there is one.

    Args:
      config: the configuration, see `invclr_jax.config`.
      workdir: folder of checkpoints, metrics and the resolved configuration.
      dataset: the data; None to load what the configuration names.
      transform: a transformation of your own; None for the one the configuration describes.
      evaluate: called with the current encoder each `config.eval.every_steps`.
      allow_changed_config: go on although `workdir` holds another configuration.

    Returns:
      The final state.
    """
    config = configuration.resolve(config)
    data.check_batch_size(config.batch_size, jax.device_count() * config.chunks)
    dataset = dataset or load_data(config)
    if config.online_probe.enabled and dataset.train.labels is None:
        raise ValueError("config.online_probe.enabled needs labels and the data set has none")
    config = describe_data(config, dataset)
    learner = _learner(config, dataset, transform)
    with _writing_to(workdir):
        _claim(pathlib.Path(workdir), config, allow_changed_config)
        with contextlib.closing(_Run(learner, pathlib.Path(workdir), dataset, evaluate)) as run:
            return run.go()


def load_data(config: ml_collections.ConfigDict) -> data.Dataset:
    """The data set that a configuration names."""
    options = {
        key: config.data[key] for key in data.options_of(config.data.name) if key in config.data
    }
    if config.data.name == "folder":
        options["size"] = config.transform.size
    return data.load(config.data.name, path=config.data.path, **options)


def describe_data(
    config: ml_collections.ConfigDict, dataset: data.Dataset
) -> ml_collections.ConfigDict:
    """The configuration with picture size and channel statistics filled in."""
    config = config.copy_and_resolve_references()
    options, images = config.transform, dataset.train.images
    if options.size is None:
        options.size = images.shape[1] if images.ndim == 4 else 32
    for key in ("mean", "std"):
        if options[key] is None and getattr(dataset, key) is not None:
            options[key] = tuple(getattr(dataset, key))
    return config


def total_steps(config: ml_collections.ConfigDict, steps_per_epoch: int) -> int:
    """Steps of the whole run: `num_steps` if given, else `num_epochs` epochs."""
    return config.num_steps or config.num_epochs * steps_per_epoch


@contextlib.contextmanager
def _writing_to(workdir: str | pathlib.Path) -> Iterator[None]:
    """Tells which folder a full disk or a missing permission is about."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"{workdir} cannot be written to ({error.strerror or error}): make room there, allow "
            "writing or choose another --workdir; the checkpoints that it lists are whole, and the "
            "same command goes on from the newest"
        ) from error


def _claim(workdir: pathlib.Path, config: ml_collections.ConfigDict, allow_changed: bool) -> None:
    """Writes the configuration into the workdir, or compares it with the one that is there."""
    path = workdir / CONFIG_FILE
    if path.exists() and not allow_changed:
        changed = configuration.differences(configuration.read(path), config)
        if changed:
            raise ValueError(
                f"{workdir} holds a run with another config:\n  " + "\n  ".join(changed) + "\n"
                "choose another --workdir, or pass --allow_changed_config to go on with this one"
            )
    if jax.process_index() == 0:
        workdir.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(configuration.to_json(config) + "\n")
        os.replace(temporary, path)


def _learner(config, dataset: data.Dataset, transform: Transform | None) -> Learner:
    """Modules, transformation and optimiser for all devices; refuses what cannot be built."""
    per_epoch = data.steps_per_epoch(len(dataset.train), config.batch_size)
    return make_learner(
        config,
        transform or build_transform(config),
        steps_per_epoch=per_epoch,
        total_steps=total_steps(config, per_epoch),
        axis=parallel.AXIS,
        num_devices=jax.device_count(),
        num_classes=dataset.num_classes,
    )


class _Run:
    """One call of `train`: what it holds open, and the loop over it."""

    def __init__(self, learner: Learner, workdir, dataset, evaluate):
        config = learner.config
        self.learner, self.config, self.dataset, self.evaluate = learner, config, dataset, evaluate
        self.per_epoch = data.steps_per_epoch(len(dataset.train), config.batch_size)
        self.total = total_steps(config, self.per_epoch)
        self.checkpoints = Checkpoints(workdir, keep=config.checkpoint.keep)
        self.start, self.step = restore_or_create(self.learner, self.checkpoints, dataset)
        self.saved = self.step if self.checkpoints.steps() else -1
        self.log = Log(
            workdir,
            total_steps=self.total,
            steps_per_epoch=self.per_epoch,
            start_step=self.step,
            batch_size=config.batch_size,
            tensorboard=config.log.tensorboard,
            active=jax.process_index() == 0,
        )
        self.pending: list[tuple[int, dict]] = []

    def go(self) -> Result:
        """Steps until the end or a signal."""
        if self.step:
            self.log.say(f"going on from step {self.step}")
        step_fn, state = compile_steps(self.learner), parallel.replicate(self.start)
        del self.start  # the devices hold it now
        on_device = self.config.data.on_device
        feed = data.make_feed(
            self.dataset.train,
            seed=self.config.seed,
            batch_size=self.config.batch_size,
            on_device="auto" if on_device is None else on_device,
            start_step=self.step,
            num_steps=self.total,
        )
        with stop_requests() as stop, feed:
            for step, (rows, indices) in feed:
                if stop.reached(step):
                    break
                state, metrics = step_fn(step, state, rows, indices)
                self.step = step + 1
                self.pending.append((self.step, metrics))
                self._after_step(state)
            self._flush()
            self._save(state)
            self.checkpoints.wait()
        if stop.signal is not None:
            self.log.say(f"stopped by signal {stop.signal}; step {self.step} is saved")
        return Result(_host_copy(state), self.step, stop.signal)

    def _after_step(self, state) -> None:
        if self.step % self.config.log.every_steps == 0 or self.step == self.total:
            self._flush()
        if self.step % self.config.checkpoint.every_steps == 0:
            self._flush()
            self._save(state)
        every = self.config.eval.every_steps
        if self.evaluate is not None and every and self.step % every == 0:
            encoder = encoder_of(self.learner, _host_copy(state))
            self.log.write(self.step, self.evaluate(encoder, self.dataset))

    def _flush(self) -> None:
        """Waits for the device, refuses NaN, and logs the mean since the last time."""
        pending, self.pending = self.pending, []
        if not pending:
            return
        values = [(step, _numbers(metrics)) for step, metrics in pending]
        for step, metrics in values:
            self._refuse_non_finite(step, metrics)
        names = {name: None for _, metrics in values for name in metrics}  # in their order
        seen = {name: [metrics[name] for _, metrics in values if name in metrics] for name in names}
        self.log.write(self.step, {name: float(np.mean(seen[name])) for name in seen})

    def _refuse_non_finite(self, step: int, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            if not math.isfinite(value):
                kept = f"step {self.saved}" if self.saved >= 0 else "none"
                raise NonFiniteError(
                    f"{name} is {value} at step {step}; last good checkpoint: {kept}. Lower "
                    "config.optimizer.base_learning_rate or config.penalty.weight, or set "
                    "config.penalty.clip"
                )

    def _save(self, state) -> None:
        if self.step == self.saved:
            return
        copy = _host_copy(state)
        self.checkpoints.save(self.step, **parts(copy), config=self.config)
        self.saved = self.step

    def close(self) -> None:
        """Closes files and threads, each of them even where another fails."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.checkpoints.close)
            stack.callback(self.log.close)


def _numbers(metrics: Mapping[str, jax.Array]) -> dict[str, float]:
    return {name: float(value) for name, value in parallel.unreplicate(metrics).items()}


def _host_copy(state: TrainState) -> TrainState:
    return parallel.unreplicate(state)
