"""Reads the runs' records and averages over seeds."""

import contextlib
import dataclasses
import json
import math
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Record = Mapping[str, Any]
Metric = str | Callable[[Record], float]
"""A metric's name, or what to compute from a record; KeyError if it was not measured."""


@dataclasses.dataclass(frozen=True)
class Stat:
    """A mean over seeds.

    Attributes:
      mean: of the seeds.
      error: its standard error, None for a single seed.
      seeds: how many.
    """

    mean: float
    error: float | None = None
    seeds: int = 1

    def __str__(self) -> str:
        if self.error is None:
            return _digits(self.mean)
        if self.error == 0 or not math.isfinite(self.error):
            return f"{_digits(self.mean)} ± {self.error:g}"
        # The error with two digits, the mean to the same place.
        place = 1 - math.floor(math.log10(self.error))
        exponent = math.floor(math.log10(abs(self.mean))) if self.mean else 0
        if exponent < -2:
            scale = 10.0**exponent
            places = max(place + exponent, 0)
            return f"({self.mean / scale:.{places}f} ± {self.error / scale:.{places}f})e{exponent}"
        places = min(max(place, 0), 6)
        return f"{self.mean:.{places}f} ± {self.error:.{places}f}"


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def summarise(values: Sequence[float]) -> Stat:
    """Mean and standard error, s/√n with Bessel's correction."""
    array = np.asarray(values, np.float64)
    error = float(array.std(ddof=1) / math.sqrt(len(array))) if len(array) > 1 else None
    return Stat(float(array.mean()), error, len(array))


class Records:
    """All records of one scale.

    Args:
      records: one per run and seed.
      scale: theirs.
    """

    def __init__(self, records: Sequence[Record], scale: str):
        self.scale = scale
        self._runs: dict[tuple[str, str], list[Record]] = {}
        for record in sorted(records, key=lambda record: record["seed"]):
            self._runs.setdefault((record["dataset"], record["name"]), []).append(record)

    def __iter__(self) -> Iterator[Record]:
        return (record for records in self._runs.values() for record in records)

    def __len__(self) -> int:
        return sum(map(len, self._runs.values()))

    def of(self, dataset: str, name: str) -> list[Record]:
        """The records of a run, one per seed, in order."""
        return self._runs.get((dataset, name), [])

    def names(self, dataset: str) -> list[str]:
        """The runs on a data set."""
        return [name for data, name in self._runs if data == dataset]

    def values(self, dataset: str, name: str, metric: Metric) -> list[float]:
        """The metric of each seed that has it."""
        values = []
        for record in self.of(dataset, name):
            with contextlib.suppress(KeyError):
                values.append(_measure(record, metric))
        return values

    def stat(self, dataset: str, name: str, metric: Metric) -> Stat | None:
        """Mean and standard error over the seeds; None if nothing was measured."""
        values = self.values(dataset, name, metric)
        return summarise(values) if values else None

    def factor(self, dataset: str, name: str, metric: Metric, base: str = "none") -> Stat | None:
        """A positive metric over that of another run with the same seed.

        Returns:
          The geometric mean over seeds that both runs have, and its standard error; None if there
          are none.
        """
        others = {record["seed"]: record for record in self.of(dataset, base)}
        logarithms = []
        for record in self.of(dataset, name):
            with contextlib.suppress(KeyError):
                value, other = (_measure(r, metric) for r in (record, others[record["seed"]]))
                logarithms.append(math.log(value / other))
        if not logarithms:
            return None
        logs = summarise(logarithms)
        mean = math.exp(logs.mean)
        return Stat(mean, None if logs.error is None else mean * logs.error, logs.seeds)

    def curve(
        self, dataset: str, name: str, xs: Sequence[Any], metric: Callable[[Any], Metric]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x, mean and standard error (0 for one seed) of the points that were measured."""
        stats = [(x, self.stat(dataset, name, metric(x))) for x in xs]
        points = [(x, stat.mean, stat.error or 0.0) for x, stat in stats if stat is not None]
        x, mean, error = np.array(points, np.float64).reshape(-1, 3).T
        return x, mean, error


def _measure(record: Record, metric: Metric) -> float:
    return record["metrics"][metric] if isinstance(metric, str) else metric(record)


def load(results: pathlib.Path, scale: str) -> Records:
    """Reads `results/<scale>/<data set>/<name>/seed<k>.json`."""
    paths = sorted((results / scale).glob("*/*/seed*.json"))
    return Records([json.loads(path.read_text()) for path in paths], scale)
