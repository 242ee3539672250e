"""Loading and feeding: seconds to memory, and batches from the host and what a step consumes."""

import pathlib
import tempfile

import jax
import numpy as np

from benchmarks.measure import Row, interleaved, medians
from benchmarks.ours import Run, setting
from invclr_jax import data

BATCH, STEPS = 64, 50


def rows(repeats: int) -> list[Row]:
    """Loading times, and the host feed compared with the plain training step."""
    with tempfile.TemporaryDirectory() as folder:
        _write_cifar(pathlib.Path(folder))
        dataset = data.load("cifar10", path=folder)
        seconds = medians(
            interleaved(
                {
                    "cifar": lambda: data.load("cifar10", path=folder).train.images,
                    "spirograph": lambda: data.load("spirograph").train.images,
                },
                repeats=repeats,
            )
        )
    run = Run(setting(batch_size=BATCH * jax.local_device_count(), data__name="cifar10"), dataset)
    passes = medians(
        interleaved(
            {"feed": lambda: _drain(dataset.train), "step": lambda: run.step(penalised=False)},
            repeats=repeats,
        )
    )
    run.close()
    return [
        Row("CIFAR-10, binary folder to memory", seconds["cifar"], target="< 2 s"),
        Row("Spirograph, 120,000 rows of factors", seconds["spirograph"], target="< 1 s"),
        Row(
            f"host feed of {BATCH} CIFAR images",
            passes["feed"] / STEPS,
            passes["step"],
            "plain step of a ResNet18 width 64",
            "≥ 5×",
        ),
    ]


def _write_cifar(folder: pathlib.Path) -> None:
    """Random records in the official layout and of the official size."""
    rng = np.random.default_rng(0)
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        records = rng.integers(0, 256, (10_000, 3073), dtype=np.uint8)
        records[:, 0] %= 10
        records.tofile(folder / name)


def _drain(split: data.Split) -> None:
    devices = jax.local_device_count()
    with data.make_feed(
        split, seed=0, batch_size=BATCH * devices, num_steps=STEPS, on_device=False
    ) as feed:
        for _, batch in feed:
            jax.block_until_ready(batch)
