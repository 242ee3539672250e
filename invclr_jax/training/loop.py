"""The training loop: resume, step, log, checkpoint, stop cleanly."""

import contextlib
import dataclasses
import logging
import math
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax
import ml_collections
import numpy as np

from invclr_jax import data, parallel
from invclr_jax.checkpoint import Checkpoints, Encoder
from invclr_jax.methods import collapse
from invclr_jax.training import writers as writing
from invclr_jax.training.interruption import stop_requests
from invclr_jax.training.programs import Programs
from invclr_jax.training.restore import encoder_of, parts, restore_or_create
from invclr_jax.training.state import Recipe, TrainState
from invclr_jax.training.step import compile_steps, is_penalised, step_name

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


def run(
    recipe: Recipe,
    config: ml_collections.ConfigDict,
    workdir: str | pathlib.Path,
    dataset: data.Dataset,
    *,
    writers: Sequence[writing.Writer] | None = None,
    evaluate: Evaluate | None = None,
    programs: Programs | None = None,
) -> Result:
    """Trains by a recipe, resuming from the newest checkpoint in `workdir` if there is one.

    Args:
      recipe: the method and the optimiser.
      config: how long, how often to log, save and evaluate; stored with every checkpoint.
      workdir: folder of checkpoints and metrics.
      dataset: the data.
      writers: where metrics go; None for JSON lines, TensorBoard and a progress line.
      evaluate: called with the current encoder each `config.eval.every_steps`.
      programs: compiled programs of earlier runs; None to compile.

    Returns:
      The final state.
    """
    with writing_to(workdir):
        this = _Run(recipe, config, pathlib.Path(workdir), dataset, writers, evaluate, programs)
        with contextlib.closing(this):
            return this.go()


def total_steps(config: ml_collections.ConfigDict, steps_per_epoch: int) -> int:
    """Steps of the whole run: `num_steps` if given, else `num_epochs` epochs."""
    return config.num_steps or config.num_epochs * steps_per_epoch


@contextlib.contextmanager
def writing_to(workdir: str | pathlib.Path) -> Iterator[None]:
    """Tells which folder a full disk or a missing permission is about."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"{workdir} cannot be written to ({error.strerror or error}): make room there, allow "
            "writing or choose another workdir; the checkpoints that it lists are whole, and the "
            "same command resumes from the newest"
        ) from error


def default_writers(
    workdir: pathlib.Path, config: ml_collections.ConfigDict, *, total: int, start_step: int
) -> list[writing.Writer]:
    """JSON lines, a progress line, and TensorBoard or a tracker where the config asks for them."""
    path = workdir / writing.METRICS
    wanted: list[writing.Writer] = [writing.JsonLines(path, start_step=start_step)]
    if config.log.tensorboard:
        wanted.append(writing.TensorBoard(workdir / "tensorboard", start_step=start_step))
    if config.log.tracker:
        values = {"project": config.log.project, "config": config.to_dict()}
        wanted.append(writing.Tracker(config.log.tracker, **values))
    return [*wanted, writing.Progress(total, start_step=start_step)]


class _Run:
    """One call of `run`: what it holds open, and the loop over it."""

    def __init__(
        self, recipe: Recipe, config, workdir: pathlib.Path, dataset, writers, evaluate, programs
    ):
        self.recipe, self.config, self.dataset, self.evaluate = recipe, config, dataset, evaluate
        self.programs = programs
        self.per_epoch = data.steps_per_epoch(len(dataset.train), config.batch_size)
        self.total = total_steps(config, self.per_epoch)
        self.checkpoints = Checkpoints(workdir, keep=config.checkpoint.keep)
        if programs is not None:
            programs.read_ahead(step_name(is_penalised(recipe, 0)), jax.local_devices())
        self.start, self.step = restore_or_create(recipe, self.checkpoints, programs)
        self.saved = self.step if self.checkpoints.steps() else -1
        if jax.process_index() != 0:
            writers = ()
        elif writers is None:
            writers = default_writers(workdir, config, total=self.total, start_step=self.step)
        self.log = writing.Writers(writers)
        self.logged = (time.perf_counter(), self.step)
        self.pending: list[tuple[int, dict]] = []
        self.collapsed = False

    def go(self) -> Result:
        """Steps until the end or a signal."""
        if self.step:
            self.log.say(f"resuming from step {self.step}")
        step_fn = compile_steps(self.recipe, kept=self.programs)
        state = parallel.replicate(self.start)
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
            self._flush()
            encoder = encoder_of(self.recipe, _host_copy(state), self.config)
            epoch = self.step / self.per_epoch
            self.log.write(self.step, {"epoch": epoch, **self.evaluate(encoder, self.dataset)})
            self.logged = (time.perf_counter(), self.step)

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
        means = {name: float(np.mean(seen[name])) for name in seen}
        self._warn_of_collapse(means)
        self.log.write(self.step, {"epoch": self.step / self.per_epoch, **means, **self._speed()})
        if self.programs is not None:
            self.programs.write()

    def _speed(self) -> dict[str, float]:
        """Images per second since the last time."""
        now, (then, last) = time.perf_counter(), self.logged
        self.logged = (now, self.step)
        images = (self.step - last) * self.config.batch_size
        return {"images_per_second": images / max(now - then, 1e-9)}

    def _refuse_non_finite(self, step: int, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            if not math.isfinite(value):
                kept = f"step {self.saved}" if self.saved >= 0 else "none"
                raise NonFiniteError(
                    f"{name} is {value} at step {step}; last good checkpoint: {kept}. Lower "
                    "config.optimizer.base_learning_rate or config.penalty.weight, or set "
                    "config.penalty.clip"
                )

    def _warn_of_collapse(self, means: Mapping[str, float]) -> None:
        """Says so each time that projections collapse, not while they stay so."""
        sentence = collapse.warning(means)
        if sentence and not self.collapsed:
            logging.getLogger(__name__).warning("step %d: %s", self.step, sentence)
        self.collapsed = sentence is not None

    def _save(self, state) -> None:
        if self.step == self.saved:
            return
        self.checkpoints.save(self.step, **parts(_host_copy(state)), config=self.config.to_dict())
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
