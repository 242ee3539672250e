"""What a run tells: lines or a progress bar, JSON lines, TensorBoard events."""

import contextlib
import json
import os
import pathlib
import sys
import time
from collections.abc import Mapping

import tensorboardX
import tqdm

from invclr_jax.durations import duration

METRICS = "metrics.jsonl"


class Log:
    """Writes a run's metrics; does nothing on processes other than the first.

    Args:
      workdir: the run's folder; `metrics.jsonl` and TensorBoard events go there.
      total_steps: of the whole run.
      steps_per_epoch: to show the epoch.
      start_step: step the run goes on from; later lines of an earlier try are dropped.
      batch_size: images a step, for the speed.
      tensorboard: whether to write TensorBoard events.
      active: False for silence.
    """

    def __init__(
        self,
        workdir: str | pathlib.Path,
        *,
        total_steps: int,
        steps_per_epoch: int,
        start_step: int = 0,
        batch_size: int = 1,
        tensorboard: bool = True,
        active: bool = True,
    ):
        self._total, self._per_epoch, self._batch = total_steps, steps_per_epoch, batch_size
        self._active = active
        self._last = (time.perf_counter(), start_step)
        if not active:
            return
        path = pathlib.Path(workdir) / METRICS
        _keep_until(path, start_step)
        self._file = path.open("a")
        self._events = None
        if tensorboard:
            folder = str(pathlib.Path(workdir) / "tensorboard")
            self._events = tensorboardX.SummaryWriter(folder, purge_step=start_step + 1)
        self._bar = tqdm.tqdm(
            total=total_steps,
            initial=start_step,
            unit="step",
            dynamic_ncols=True,
            disable=not sys.stderr.isatty(),
        )

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Records metrics after `step` steps and shows them."""
        if not self._active:
            return
        now, (then, last_step) = time.perf_counter(), self._last
        self._last = (now, step)
        speed = (step - last_step) / max(now - then, 1e-9)
        record = {"step": step, "epoch": step / self._per_epoch, **metrics}
        if step > last_step:
            record["images_per_second"] = speed * self._batch
        print(json.dumps(record), file=self._file, flush=True)
        if self._events is not None:
            for name, value in record.items():
                self._events.add_scalar(name, value, step)
        self._show(step, metrics, speed)

    def _show(self, step: int, metrics: Mapping[str, float], speed: float) -> None:
        terms = " ".join(f"{name} {value:.4g}" for name, value in metrics.items())
        if not self._bar.disable:
            self._bar.set_postfix_str(terms, refresh=False)
            self._bar.update(step - self._bar.n)
            return
        remaining = "?" if speed == 0 else duration((self._total - step) / speed)
        print(
            f"step {step}/{self._total} ({100 * step / self._total:.1f}%) "
            f"epoch {step / self._per_epoch:.2f} | {terms} | "
            f"{speed * self._batch:.0f} images/s | ETA {remaining}",
            flush=True,
        )

    def say(self, sentence: str) -> None:
        """Shows a sentence without breaking the progress bar."""
        if self._active:
            self._bar.write(sentence)

    def close(self) -> None:
        """Flushes and closes the files, each of them even where another fails."""
        if not self._active:
            return
        with contextlib.ExitStack() as stack:
            if self._events is not None:
                stack.callback(self._events.close)
            stack.callback(self._file.close)
            stack.callback(self._bar.close)


def _keep_until(path: pathlib.Path, step: int) -> None:
    """Drops lines after `step` and a torn last line, which a killed run may have left."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line + "\n")
        except (ValueError, KeyError, TypeError):
            continue
    temporary = path.with_suffix(".tmp")
    temporary.write_text("".join(kept))
    os.replace(temporary, path)
