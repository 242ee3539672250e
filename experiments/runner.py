"""Trains and evaluates what is missing, and keeps a small record of every run.

Checkpoints live in `workdir/<scale>/<data set>/<name>/seed<k>`; the record, which is all that
tables and plots read, in `results/<scale>/<data set>/<name>/seed<k>.json`.
"""

import dataclasses
import functools
import json
import os
import pathlib
import time
from typing import Any

import jax
import ml_collections

from experiments.datasets import DATASETS, Kind
from experiments.runs import Run
from invclr_jax import config as configuration
from invclr_jax.api import train
from invclr_jax.checkpoint import load_encoder
from invclr_jax.data import Dataset, sample
from invclr_jax.evaluation import protocols
from invclr_jax.evaluation.context import Context
from invclr_jax.evaluation.results import PROTOCOL_VERSION, Results, code_version
from invclr_jax.evaluation.settings import Settings
from invclr_jax.files import write_atomically
from invclr_jax.training.writers import METRICS

_COMMON = ("invariance", "alpha", "average", "label_fraction", "robustness")
PROTOCOLS: dict[Kind, tuple[str, ...]] = {
    "factors": _COMMON,
    "pictures": ("untransformed", *_COMMON, "ensemble", "knn"),
}

_CPU = Settings(num_samples=(1, 2, 5, 10, 20, 50), num_images=200, num_alphas=30)
SETTINGS: dict[str, dict[Kind, Settings]] = {
    "cpu": {
        "factors": _CPU,
        # Larger pictures, and the encoder sees them for two more protocols.
        "pictures": dataclasses.replace(_CPU, num_samples=(1, 2, 5, 10, 20), ensemble_samples=10),
    },
    "paper": {"factors": Settings(), "pictures": Settings()},
}
ROWS: dict[str, tuple[int | None, int | None]] = {"cpu": (4000, 2000), "paper": (None, None)}
"""Sizes of the samples of training and test rows that the evaluation uses; None for all."""

LOG_POINTS = 60


class Stopped(Exception):
    """A signal asked the process to stop; the run's state is saved."""

    def __init__(self, number: int):
        super().__init__(f"stopped by signal {number}")
        self.signal = number


def ensure(
    run: Run,
    seed: int,
    workdir: pathlib.Path,
    results: pathlib.Path,
    data_path: str | None = None,
) -> dict[str, Any]:
    """The record of a run; trains and evaluates what is missing.

    Args:
      run: what to train.
      seed: of training and evaluation.
      workdir: root of the checkpoints.
      results: root of the records.
      data_path: where CIFAR is.

    Returns:
      The record, see `_record`.
    """
    config = run.config(seed, data_path)
    path = record_path(results, run, seed)
    known = json.loads(path.read_text()) if path.exists() else None
    if known is not None and _is_current(known, config, evaluation_options(run, seed)):
        return known
    folder, dataset = _train(run, config, workdir)
    record = _record(run, seed, config, folder, dataset)
    text = json.dumps(record, sort_keys=True) + "\n"
    write_atomically(path, text)
    return json.loads(text)  # as the next call reads it: tuples are lists


def train_only(run: Run, seed: int, workdir: pathlib.Path, data_path: str | None = None) -> None:
    """Trains a run without any evaluation: `experiments.checkpoints` measures what is wanted.

    Args: as for `ensure`.
    """
    config = run.config(seed, data_path)
    config.eval.every_steps = 0
    _train(run, config, workdir)


def _train(run: Run, config, workdir: pathlib.Path) -> tuple[pathlib.Path, Dataset]:
    """Trains what is missing of a run; returns its folder and its data."""
    folder = workdir / run.scale / run.dataset / run.name / f"seed{config.seed}"
    dataset = _dataset(json.dumps(config.data.to_dict()), config.transform.size)
    note_version(folder)
    result = train(config, folder, dataset=dataset)
    if result.signal is not None:
        raise Stopped(result.signal)
    return folder, dataset


def _record(run: Run, seed: int, config, folder: pathlib.Path, dataset: Dataset) -> dict[str, Any]:
    """Evaluates a finished run and gathers what is worth keeping."""
    start = time.perf_counter()
    metrics = _evaluate(run, seed, folder, dataset)
    evaluation = {"evaluate": time.perf_counter() - start}
    config = config.copy_and_resolve_references()
    config.data.path = None  # means nothing on another machine
    return {
        "scale": run.scale,
        "dataset": run.dataset,
        "name": run.name,
        "seed": seed,
        "config": config.to_dict(),
        "evaluation": evaluation_options(run, seed),
        "code": {"trained": note_version(folder), "evaluated": code_version()},
        "jax_version": jax.__version__,
        "hardware": f"{jax.device_count()} {jax.default_backend()}, {os.cpu_count()} cores",
        "seconds": training_seconds(folder, config.batch_size) | evaluation,
        "metrics": metrics,
        **curves(folder),
    }


def record_path(results: pathlib.Path, run: Run, seed: int) -> pathlib.Path:
    """Where a run's record is."""
    return results / run.scale / run.dataset / run.name / f"seed{seed}.json"


def settings_of(run: Run, seed: int) -> Settings:
    """How a run is evaluated."""
    return dataclasses.replace(SETTINGS[run.scale][DATASETS[run.dataset].kind], seed=seed)


def evaluation_options(run: Run, seed: int) -> dict[str, Any]:
    """Everything that affects the final metrics, as JSON keeps it."""
    options = {
        "version": PROTOCOL_VERSION,
        "settings": dataclasses.asdict(settings_of(run, seed)),
        "rows": ROWS[run.scale],
    }
    return json.loads(json.dumps(options))


def protocol_names(run: Run) -> tuple[str, ...]:
    """The protocols that make sense for a run's data."""
    return PROTOCOLS[DATASETS[run.dataset].kind]


def _is_current(record, config, options) -> bool:
    there = configuration.from_dict(record["config"])
    return not configuration.differences(there, config) and record["evaluation"] == options


@functools.lru_cache(maxsize=2)
def _dataset(options: str, size: int | None) -> Dataset:
    """The data of a configuration; runs of the same data share it."""
    data = ml_collections.ConfigDict(json.loads(options))
    return configuration.load_data(
        ml_collections.ConfigDict({"data": data, "transform": {"size": size}})
    )


def note_version(folder: pathlib.Path) -> str:
    """The code that started the run, even if newer code resumed it."""
    path = folder / "code_version.txt"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(code_version() + "\n")
    return path.read_text().strip()


def _evaluate(run: Run, seed: int, folder: pathlib.Path, dataset: Dataset) -> dict[str, float]:
    encoder = load_encoder(folder)
    context = Context(encoder, _part(run, seed, dataset), settings_of(run, seed))
    results = Results(
        folder / "results.json", config=encoder.config.to_dict(), step=encoder.step, seed=seed
    )
    metrics: dict[str, float] = {}
    start = time.perf_counter()
    for name, outcome in protocols.run(context, protocol_names(run), results):
        if outcome.error is not None:
            raise outcome.error
        seconds = time.perf_counter() - start
        print(f"  {outcome.status}: {name}, {seconds:.0f} s", flush=True)
        metrics |= outcome.metrics
    return {name: _rounded(value) for name, value in metrics.items()}


def _part(run: Run, seed: int, dataset: Dataset) -> Dataset:
    """The sample of a data set that a run is evaluated on; seeds have different ones."""
    train_rows, test_rows = ROWS[run.scale]
    assert dataset.test is not None  # all of our data has a test split
    return dataclasses.replace(
        dataset,
        train=sample(dataset.train, train_rows, seed=seed),
        test=sample(dataset.test, test_rows, seed=seed),
    )


def _lines(folder: pathlib.Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]


def training_seconds(folder: pathlib.Path, batch_size: int) -> dict[str, float]:
    """Time of the steps according to the log: the total, and the median of one.

    The total includes compilation and whatever else the machine did; the median does not.
    """
    steps = [line for line in _lines(folder) if "images_per_second" in line]
    each = [batch_size / line["images_per_second"] for line in steps]
    before = [0.0, *(line["step"] for line in steps)]
    spans = [line["step"] - last for line, last in zip(steps, before, strict=False)]
    total = sum(span * second for span, second in zip(spans, each, strict=True))
    return {"train": _rounded(total), "step": _rounded(sorted(each)[len(each) // 2])}


def curves(folder: pathlib.Path) -> dict[str, dict[str, list[float | None]]]:
    """`training`, terms of the loss, thinned; `trajectory`, metrics measured during training."""
    lines = _lines(folder)
    measured = [line for line in lines if "invariance/ratio" in line]
    terms = [line for line in lines if "invariance/ratio" not in line]
    stride = max(len(terms) // LOG_POINTS, 1)
    return {"training": _columns(terms[::-1][::stride][::-1]), "trajectory": _columns(measured)}


def _columns(lines: list[dict[str, float]]) -> dict[str, list[float | None]]:
    """One list per metric, as long as `step`; None where a line does not have it."""
    names = {name: None for line in lines for name in line if name != "images_per_second"}
    return {
        name: [_rounded(line[name]) if name in line else None for line in lines] for name in names
    }


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
