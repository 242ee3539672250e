"""Peak memory of `evaluate --protocol=all`, measured at a small scale beside a count of its arrays.

The encoder is a single layer, so that features and probes are what takes memory. A separate process
measures by how much its peak resident memory (VmHWM) exceeds what it had after a first, tiny
evaluation, in which programs were loaded.
"""

import dataclasses
import json
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import Row
from benchmarks.memory import _peak, _start
from invclr_jax.data import Dataset, Split
from invclr_jax.evaluation.protocols import evaluate
from invclr_jax.evaluation.settings import Settings
from invclr_jax.transforms.image import ImageTransform

TRAIN, TEST, DIM, CLASSES = 4000, 800, 256, 10
SMALL = Settings(num_samples=(1, 10, 20), fractions=(0.1, 1.0), num_images=100, num_alphas=20)
PAPER = (50_000, 10_000, 2048, 10)
MB = 1e6


def rows(_: int) -> list[Row]:
    """Measured and counted, at this scale; counted at the paper's."""
    measured = _in_process()
    kept, fit = counted(TRAIN, TEST, DIM, CLASSES, SMALL)
    paper_kept, paper_fit = counted(*PAPER, Settings())
    return [
        Row(
            f"evaluate all at 3 Ms, {TRAIN} + {TEST} features of {DIM}: peak memory on a CPU",
            measured / MB,
            (kept + fit) / MB,
            "count of its arrays",
            unit="MB",
        ),
        Row("evaluate all at the paper's scale: features on the host", paper_kept / MB, unit="MB"),
        Row(
            "evaluate all at the paper's scale: largest fit, over all devices",
            paper_fit / MB,
            unit="MB",
        ),
    ]


def counted(train: int, test: int, dim: int, classes: int, settings: Settings) -> tuple[int, int]:
    """Bytes of the features that are kept, and of the largest fit.

    Kept: untransformed, single and averaged features for each M, of training and test rows, and
    the ensemble's copies of the training rows. The fit to these copies has them on the devices,
    plain and centred, with a few columns of scores.
    """
    both, copies = (train + test) * dim, settings.ensemble_fold * train
    kept = both * (1 + len(settings.num_samples)) + copies * dim
    return 4 * kept, 4 * copies * (2 * dim + 4 * classes)


@dataclasses.dataclass(frozen=True, eq=False)
class _Layer:
    transform: ImageTransform
    weights: np.ndarray

    @property
    def encode_inputs(self):
        """A layer, with its weights as arguments."""
        return jax.tree_util.Partial(_layer, jnp.asarray(self.weights))


def _layer(weights, images):
    return jnp.tanh(images.reshape(len(images), -1) @ weights)


def _data(train: int, test: int) -> Dataset:
    rng = np.random.default_rng(0)

    def split(count: int) -> Split:
        labels = (np.arange(count) % CLASSES).astype(np.int32)
        images = rng.integers(0, 180, (count, 8, 8, 3), dtype=np.uint8)
        return Split(images + (7 * labels[:, None, None, None]).astype(np.uint8), labels)

    return Dataset("made", split(train), split(test), CLASSES, (0.5,) * 3, (0.2,) * 3)


def _in_process() -> int:
    root = pathlib.Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", "benchmarks.evaluation"]
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def _measure() -> int:
    transform = ImageTransform(8, (0.5,) * 3, (0.2,) * 3)
    weights = np.random.default_rng(1).normal(0, 0.2, (192, DIM)).astype(np.float32)
    encoder = _Layer(transform, weights)
    evaluate(encoder, _data(100, 100), "all", settings=SMALL)
    before = _start()
    evaluate(encoder, _data(TRAIN, TEST), "all", settings=SMALL)
    return _peak("ours") - before


if __name__ == "__main__":
    print(json.dumps(_measure()))
