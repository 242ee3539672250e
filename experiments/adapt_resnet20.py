"""Adapts a frozen ResNet20 to rotations and colours; compared with averaging and SimCLR adapters.

    python -m experiments.adapt_resnet20 --weights=resnet20_cifar10.safetensors --data=FOLDER

Accuracies on plain test pictures, rotated by up to 45 degrees, with colours jittered at
strength 1, and under four corruptions of severity 3, which no adapter has seen. `own` is the
network's own linear layer, `probe` one fitted to clean training features; for averaging it
is fitted to averaged training features, as in the paper.
"""

import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

import invclr_jax as ic
from examples.resnet20 import encoder
from invclr_jax.evaluation.audit.encoding import Encoding
from invclr_jax.evaluation.metrics import accuracy
from invclr_jax.evaluation.probes import fit_classifier
from invclr_jax.files import write_atomically
from invclr_jax.training.adapt import Adapted, cached_features
from invclr_jax.training.adapter import AdapterSettings, fit
from invclr_jax.transforms.corruptions import corrupt
from invclr_jax.transforms.image import ImageTransform

_WEIGHTS = flags.DEFINE_string("weights", None, "The safetensors file.", required=True)
_DATA = flags.DEFINE_string("data", None, "Folder of CIFAR-10.", required=True)
_OUTPUT = flags.DEFINE_string("output", "experiments/results/adapt/adapt_resnet20.json", "JSON.")
_TRAIN = flags.DEFINE_integer("num_train", 10_000, "Training pictures.")
_TEST = flags.DEFINE_integer("num_test", 5000, "Test pictures.")
_VIEWS = flags.DEFINE_integer("num_views", 4, "Transformations of each training picture.")

CORRUPTIONS = ("gaussian_noise", "defocus_blur", "fog", "contrast")
SEVERITY = 3
SEEDS = (0, 1, 2)
TRAINING: dict[str, Any] = {"steps": 2000, "learning_rate": 3e-3}
AVERAGED = ("clean", "rotation", "colour")
ADAPTERS: dict[str, dict[str, Any]] = {
    "canonical adapter, keep 1": {"keep": 1.0},
    "canonical adapter, keep 0.1": {"keep": 0.1},
    "SimCLR adapter, keep 1": {"objective": "simclr", "keep": 1.0},
    "SimCLR adapter, keep 0": {"objective": "simclr", "keep": 0.0},
}


def image_transform(**options):
    """Pictures in [0, 1] without crops and flips unless requested."""
    still = {"crop": False, "flip": False, "grey_probability": 0.0, "jitter_probability": 0.0}
    return ImageTransform(32, (0, 0, 0), (1, 1, 1), **(still | options))


ROTATION = image_transform(affine=[1 / 8, 0, 0, 0, 0, 0])
COLOUR = image_transform(jitter_probability=1.0, strength=1.0)
BOTH = image_transform(affine=[1 / 8, 0, 0, 0, 0, 0], jitter_probability=0.8, strength=1.0)


def conditions(images: np.ndarray) -> dict[str, np.ndarray]:
    """Test pictures in [0, 1] by what was done to them."""
    key = jax.random.key(7)
    pictures = {"clean": images.astype(np.float32) / 255}
    for name, transform in (("rotation", ROTATION), ("colour", COLOUR)):
        drawn = transform.sample(jax.random.fold_in(key, len(pictures)), len(images))
        pictures[name] = np.asarray(transform.apply(jnp.asarray(images), *drawn))
    for index, name in enumerate(CORRUPTIONS):
        changed = corrupt(pictures["clean"], name, SEVERITY, jax.random.fold_in(key, 100 + index))
        pictures[name] = np.asarray(changed, np.float32)
    return pictures


def main(_):
    """Encodes once, trains every adapter, and writes a table."""
    data: Any = ic.load_data("cifar10", path=_DATA.value)
    encode, classify = encoder(_WEIGHTS.value)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(data.train))[: _TRAIN.value]
    test = rng.permutation(len(data.test))[: _TEST.value]
    labels, test_labels = data.train.labels[rows], data.test.labels[test]
    encoding = Encoding(encode, jnp.zeros((2, 32, 32, 3)), 250)
    clean, views = cached_features(encoding, data.train.images[rows], BOTH, _VIEWS.value, 0)
    pictures = conditions(data.test.images[test])
    features = {name: encoding.of_pictures(x) for name, x in pictures.items()}
    print("encoded", flush=True)

    def scores(change, tested, fitted_to=clean):
        adapted = np.asarray(change(fitted_to))
        probe = fit_classifier(adapted, labels, num_classes=10, l2=1e-4)
        found = {}
        for name, z in tested.items():
            z = np.asarray(change(z))
            own = accuracy(classify(z).argmax(1), test_labels)
            found[name] = {"own": own, "probe": accuracy(probe.predict(z), test_labels)}
        return found

    result = {"before": [scores(lambda z: z, features)]}
    _write(result)
    for name, options in ADAPTERS.items():
        result[name] = []
        for seed in SEEDS:
            settings = AdapterSettings(seed=seed, **TRAINING, **options)
            fitted = fit(jnp.asarray(clean), jnp.asarray(views), settings)
            result[name].append(scores(Adapted(encode, *fitted).after, features))
        _write(result)
    averaged = {}
    for name in AVERAGED:
        x = pictures[name]
        draws = (BOTH.sample(jax.random.key(100 + m), len(x)) for m in range(_VIEWS.value))
        averaged[name] = np.mean([encoding.transformed(BOTH, x, *d) for d in draws], axis=0)
    means = np.asarray(views).mean(1)
    result[f"averaging, M={_VIEWS.value}"] = [scores(lambda z: z, averaged, means)]
    _write(result)


def _write(result) -> None:
    """The record and its table, after every method."""
    record = {
        "num_train": _TRAIN.value,
        "num_test": _TEST.value,
        "num_views": _VIEWS.value,
        "severity": SEVERITY,
        "seeds": list(SEEDS),
        "training": TRAINING,
        "scores": result,
    }
    path = pathlib.Path(_OUTPUT.value)
    write_atomically(path, json.dumps(record, indent=1) + "\n")
    write_atomically(path.with_suffix(".md"), table(record))
    print(table(record), flush=True)


def table(record) -> str:
    """The mean over seeds, own layer / probe, in percent."""
    names = list(record["scores"]["before"][0])
    lines = ["| own layer / probe | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for method, runs in record["scores"].items():
        cells = []
        for name in names:
            found = [[run[name][k] for run in runs if name in run] for k in ("own", "probe")]
            cells.append(" / ".join(f"{np.mean(v):.1f}" for v in found if v))
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    app.run(main)
