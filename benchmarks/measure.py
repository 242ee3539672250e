"""Fair timing: contenders take turns in one run, and medians are compared."""

import dataclasses
import functools
import importlib.util
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the benchmark table.

    Attributes:
      work: what was done, with its sizes.
      ours: our median seconds (or another quantity, see `unit`).
      theirs: the reference's median seconds, None if there is none.
      reference: what "theirs" is.
      target: the ratio to reach, as text ("≥ 10×"), if one was set.
      unit: unit of `ours` and `theirs`.
      details: anything else worth keeping in the JSON file (spread, compile time, sizes).
    """

    work: str
    ours: float
    theirs: float | None = None
    reference: str = ""
    target: str = ""
    unit: str = "s"
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """How many times faster than the reference we are."""
        return None if self.theirs is None else self.theirs / self.ours


def interleaved(
    contenders: Mapping[str, Callable[[], Any]], *, repeats: int, warmup: int = 1, calls: int = 1
) -> dict[str, list[float]]:
    """Runs the contenders in turn, `repeats` times each, after `warmup` unmeasured turns.

    Args:
      contenders: functions without arguments by name; JAX results are waited for.
      repeats: measured turns.
      warmup: unmeasured turns (compilation, caches).
      calls: in a turn, after one less that are not measured. Work of milliseconds wants more than
        one: a call finds caches and threads as the contender before has left them.

    Returns:
      Seconds of every measured turn, the median of its calls, by name.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(warmup + repeats):
        for name, contender in contenders.items():
            times = [_timed(contender) for _ in range(2 * calls - 1)][calls - 1 :]
            if turn >= warmup:
                seconds[name].append(statistics.median(times))
    return seconds


def _timed(contender: Callable[[], Any]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(contender())
    return time.perf_counter() - start


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    """Median of each contender's turns."""
    return {name: statistics.median(turns) for name, turns in seconds.items()}


@functools.cache
def has_torch() -> bool:
    """Whether the PyTorch references can run; says so once if they cannot."""
    found = importlib.util.find_spec("torch") is not None
    if not found:
        print("PyTorch is not installed for comparison: pip install -e '.[benchmark]'")
    return found
