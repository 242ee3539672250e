"""Loading and feeding: seconds to memory, and batches from the host beside what a step consumes."""

import pathlib
import tempfile

import jax
import numpy as np

from benchmarks.measure import Row, interleaved, medians
from invclr_jax import data
from invclr_jax.models.resnet import ResNet18

BATCH, STEPS = 64, 50


def rows(repeats: int) -> list[Row]:
    """Loading times, and the host feed beside a ResNet18's forward and backward pass."""
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
    passes = medians(
        interleaved(
            {"feed": lambda: _drain(dataset.train), "step": _training_pass()}, repeats=repeats
        )
    )
    return [
        Row("CIFAR-10, binary folder to memory", seconds["cifar"], target="< 2 s"),
        Row("Spirograph, 120,000 rows of factors", seconds["spirograph"], target="< 1 s"),
        Row(
            f"host feed of {BATCH} CIFAR images",
            passes["feed"] / STEPS,
            passes["step"],
            "ResNet18, two views, forward and backward",
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


def _training_pass():
    """One device's part of a step: the gradient of a ResNet18 on two views of a batch."""
    model, views = ResNet18(), np.zeros((2 * BATCH, 32, 32, 3), np.float32)
    variables = model.init(jax.random.key(0), views[:1])

    @jax.jit
    def gradient(variables, views):
        def loss(params):
            changed = variables | {"params": params}
            z, _ = model.apply(changed, views, train=True, mutable=["batch_stats"])
            return z.var()

        return jax.grad(loss)(variables["params"])

    return lambda: gradient(variables, views)
