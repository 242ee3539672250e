"""CIFAR again, fairly: every row, standardised features, l2 chosen on held-out rows, and kNN.

    python -m experiments.all_rows --workdir=runs/cpu/cifar10 --data_path=DIR

For every finished run below the folder. The records' probe has a fixed l2, which favours features
of large variance, and 4000 training rows. Results go to all_rows.json beside the records and to a
table.
"""

import json
import pathlib

import jax.numpy as jnp
import numpy as np
from absl import flags

from experiments.jumps import table
from invclr_jax import cli
from invclr_jax.checkpoint import load_encoder
from invclr_jax.data import load
from invclr_jax.evaluation.features import plain_features
from invclr_jax.evaluation.knn import knn_predict
from invclr_jax.evaluation.results import code_version
from invclr_jax.evaluation.selection import choose_l2

_WORKDIR = flags.DEFINE_string("workdir", "runs/cpu/cifar10", "Folder of NAME/seedK runs.")
_DATA_PATH = flags.DEFINE_string("data_path", None, "Where CIFAR is, see invclr_jax.data.load.")
_OUT = flags.DEFINE_string("out", "experiments/results/cpu/all_rows.json", "File of the results.")

GRID = tuple(10.0**power for power in range(-6, 0))
COLUMNS = {"probe": "probe, %", "knn": "kNN, %", "error": "binomial error, %", "l2": "l2"}


def measure(train, test, labels, test_labels, num_classes: int) -> dict[str, float]:
    """All columns.

    Args:
      train: features of the training rows, `[n, d]`.
      test: of the test rows, `[t, d]`.
      labels: classes of the training rows.
      test_labels: of the test rows.
      num_classes: how many there are.
    """
    mean, std = train.mean(0, keepdims=True), train.std(0, keepdims=True)
    scaled, test_scaled = ((rows - mean) / np.where(std > 0, std, 1) for rows in (train, test))
    choice = choose_l2(scaled, labels, num_classes=num_classes, grid=GRID)
    guesses = {
        "probe": jnp.argmax(choice.probe.scores(test_scaled), axis=1),
        "knn": knn_predict(train, labels, test, num_classes=num_classes),
    }
    found = {name: float(100 * np.mean(guess == test_labels)) for name, guess in guesses.items()}
    error = np.sqrt(found["probe"] * (100 - found["probe"]) / len(test_labels))
    return found | {"error": float(error), "l2": choice.l2}


def main() -> int:
    """Measures every finished run below the folder."""
    root, out = pathlib.Path(_WORKDIR.value), pathlib.Path(_OUT.value)
    known = json.loads(out.read_text())["runs"] if out.exists() else {}
    for folder in sorted(root.glob("*/seed*/checkpoints")):
        name = str(folder.parent.relative_to(root.parent))
        encoder = load_encoder(folder.parent)
        if name in known or encoder.step < encoder.config.num_steps:
            continue
        data = load(encoder.config.data.name, path=_DATA_PATH.value)
        assert data.test is not None
        features = [
            np.asarray(plain_features(encoder.encode_inputs, encoder.transform, part.images))
            for part in (data.train, data.test)
        ]
        known[name] = measure(*features, data.train.labels, data.test.labels, data.num_classes)
        out.parent.mkdir(parents=True, exist_ok=True)
        record = {"code": code_version(), "rows": [len(f) for f in features], "runs": known}
        out.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
        print(name, {k: round(v, 5) for k, v in known[name].items()}, flush=True)
    print(table(known, COLUMNS))
    return 0


if __name__ == "__main__":
    cli.run(main)
