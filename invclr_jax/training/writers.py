"""Metric writers: where a run's numbers go. Anything with `write` and `close` is one."""

import contextlib
import importlib
import json
import logging
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import tqdm

from invclr_jax.durations import duration
from invclr_jax.files import write_atomically

METRICS = "metrics.jsonl"
TRACKERS = ("wandb", "trackio")
SHOWN = 3
"""How many numbers of an evaluation the progress line shows; the files hold all."""

Metrics = Mapping[str, float]


@runtime_checkable
class Writer(Protocol):
    """What receives a run's metrics, on the first process of a job only."""

    def write(self, step: int, metrics: Metrics) -> None:
        """Takes named numbers after `step` steps."""
        ...

    def close(self) -> None:
        """Writes what is still to be written and lets go of files."""
        ...


class JsonLines:
    """One JSON object per line.

    Args:
      path: the file; it is added to.
      start_step: step that the run resumes from; later lines of an earlier try are dropped.
    """

    def __init__(self, path: str | pathlib.Path, *, start_step: int = 0):
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _keep_until(path, start_step)
        self._file = path.open("a")

    def write(self, step: int, metrics: Metrics) -> None:
        """Adds a line, at once."""
        print(json.dumps({"step": step, **metrics}), file=self._file, flush=True)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _keep_until(path: pathlib.Path, step: int) -> None:
    """Drops lines after `step` and a torn last line, which a killed run may have left."""
    kept = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line + "\n")
        except (ValueError, KeyError, TypeError):
            continue
    write_atomically(path, "".join(kept))


class TensorBoard:
    """TensorBoard events.

    Args:
      folder: where they go.
      start_step: step that the run resumes from.
    """

    def __init__(self, folder: str | pathlib.Path, *, start_step: int = 0):
        import tensorboardX

        self._events = tensorboardX.SummaryWriter(str(folder), purge_step=start_step + 1)

    def write(self, step: int, metrics: Metrics) -> None:
        """Adds a point to each metric's curve."""
        for name, value in metrics.items():
            self._events.add_scalar(name, value, step)

    def close(self) -> None:
        """Flushes and closes the events."""
        self._events.close()


class Progress:
    """A progress bar on a terminal, a line per report elsewhere.

    Args:
      total_steps: of the whole run.
      start_step: step that the run resumes from.
    """

    def __init__(self, total_steps: int, *, start_step: int = 0):
        self._total = total_steps
        self._last = (time.perf_counter(), start_step)
        self._bar = tqdm.tqdm(
            total=total_steps,
            initial=start_step,
            unit="step",
            dynamic_ncols=True,
            disable=not sys.stderr.isatty(),
        )

    def write(self, step: int, metrics: Metrics) -> None:
        """Shows the metrics of training in full, those of an evaluation in short."""
        now, (then, last) = time.perf_counter(), self._last
        terms = {n: v for n, v in metrics.items() if n not in ("epoch", "images_per_second")}
        if step == last:  # measured after the step that was shown
            self.say(f"evaluated at step {step}: {_terms(terms, SHOWN)}")
            return
        self._last = (now, step)
        if not self._bar.disable:
            self._bar.set_postfix_str(_terms(terms), refresh=False)
            self._bar.update(step - self._bar.n)
            return
        remaining = duration((self._total - step) * (now - then) / (step - last))
        speed = metrics.get("images_per_second", 0.0)
        print(
            f"step {step}/{self._total} ({100 * step / self._total:.1f}%) "
            f"epoch {metrics.get('epoch', 0.0):.2f} | {_terms(terms)} | "
            f"{speed:.0f} images/s | ETA {remaining}",
            flush=True,
        )

    def say(self, sentence: str) -> None:
        """Shows a message without breaking the progress bar."""
        self._bar.write(sentence)

    def close(self) -> None:
        """Leaves the bar as it is."""
        self._bar.close()


def _terms(metrics: Metrics, most: int | None = None) -> str:
    shown = " ".join(f"{name} {value:.4g}" for name, value in list(metrics.items())[:most])
    left = len(metrics) - most if most is not None else 0
    return f"{shown} and {left} more" if left > 0 else shown


class Tracker:
    """Weights & Biases, or Trackio, which has the same interface and keeps everything local.

    Args:
      package: `wandb` or `trackio`; it must be installed, `pip install invclr_jax[wandb]`.
      project: the project that the run belongs to.
      config: what to show of the run's configuration.
      **options: further arguments of the package's `init`, such as `mode="offline"`.
    """

    def __init__(
        self,
        package: str,
        *,
        project: str,
        config: Mapping[str, Any] | None = None,
        **options: Any,
    ):
        if package not in TRACKERS:
            raise ValueError(f"no tracker {package!r}: use one of {', '.join(TRACKERS)}")
        try:
            self._package = importlib.import_module(package)
        except ImportError:
            raise ValueError(
                f"{package} is not installed: pip install invclr_jax[{package}]"
            ) from None
        self._package.init(project=project, config=dict(config or {}), **options)

    def write(self, step: int, metrics: Metrics) -> None:
        """Logs the metrics at the step."""
        self._package.log(dict(metrics), step=step)

    def close(self) -> None:
        """Ends the tracked run."""
        self._package.finish()


class Writers:
    """Several writers as one. One that fails is reported once and left out; training goes on.

    Args:
      writers: where metrics go; all are closed by `close`.
    """

    def __init__(self, writers: Sequence[Writer]):
        self._writers = list(writers)

    def write(self, step: int, metrics: Metrics) -> None:
        """Hands the metrics to every writer that still works."""
        for writer in list(self._writers):
            try:
                writer.write(step, metrics)
            except Exception as error:
                self._report(writer, error)
                self._writers.remove(writer)
                with contextlib.suppress(Exception):  # it has been reported
                    writer.close()

    def say(self, sentence: str) -> None:
        """Shows a message through any writer that can."""
        for writer in self._writers:
            if isinstance(writer, Progress):
                writer.say(sentence)

    def close(self) -> None:
        """Closes every writer, also where another fails."""
        for writer in self._writers:
            try:
                writer.close()
            except Exception as error:
                self._report(writer, error)

    def _report(self, writer: Writer, error: Exception) -> None:
        logging.getLogger(__name__).warning(
            "%s failed (%s): metrics no longer go there, training goes on",
            type(writer).__name__,
            str(error) or type(error).__name__,
        )
