"""Shows what a data set holds: `invclr data --name=cifar10 --path=FOLDER`."""

import time

import numpy as np
from absl import flags

from invclr_jax import cli
from invclr_jax.data import NAMES, Dataset, Pictures, Split, load, options_of
from invclr_jax.data.dataset import channel_statistics

_NAME = flags.DEFINE_enum("name", None, NAMES, "Which dataset.", required=True)
_PATH = flags.DEFINE_string("path", None, "File or folder; see config.data.path.")
_SIZE = flags.DEFINE_integer("size", 32, "Pixels per side, for --name=folder.", lower_bound=1)
_VERIFY = flags.DEFINE_bool("verify", True, "Check the checksums of official archives.")
_DOWNLOAD = flags.DEFINE_bool("download", False, "Fetch CIFAR if it is not there.")


def summary(dataset: Dataset) -> str:
    """Counts, shapes, classes and channel statistics, as lines of text."""
    lines = [f"{dataset.name}: {_classes(dataset)}"]
    for part, split in (("train", dataset.train), ("test", dataset.test)):
        lines.append(f"{part:5}  none" if split is None else f"{part:5}  {_describe(split)}")
        if split is not None and split.labels is not None and dataset.num_classes:
            counts = np.bincount(split.labels, minlength=dataset.num_classes).tolist()
            lines.append(f"       per class {_histogram(counts)}")
    if dataset.mean and dataset.std:
        lines.append(f"normalised by mean {_numbers(dataset.mean)} std {_numbers(dataset.std)}")
    if dataset.mean and dataset.std and not isinstance(dataset.train.images, Pictures):
        mean, std = channel_statistics(dataset.train.images)
        lines.append(f"measured      mean {_numbers(mean)} std {_numbers(std)}")
    return "\n".join(lines)


def _classes(dataset: Dataset) -> str:
    kind = f"{dataset.num_classes} classes" if dataset.num_classes else "no classes"
    return kind if dataset.label_names is None else f"{kind} ({', '.join(dataset.label_names)})"


def _describe(split: Split) -> str:
    labels = "no labels" if split.labels is None else f"labels {split.labels.shape}"
    return f"{split.images.dtype} {split.images.shape}, {labels}"


def _histogram(counts: list[int]) -> str:
    return f"{counts[0]} each" if len(set(counts)) == 1 else str(counts)


def _numbers(values: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{value:.4f}" for value in values) + ")"


def main() -> None:
    """Loads the dataset and prints its summary."""
    chosen = {"size": _SIZE.value, "verify": _VERIFY.value, "download": _DOWNLOAD.value}
    known = options_of(_NAME.value)
    begin = time.perf_counter()
    options = {key: value for key, value in chosen.items() if key in known}
    dataset = load(_NAME.value, path=_PATH.value, **options)
    seconds = time.perf_counter() - begin
    print(f"{summary(dataset)}\nloaded in {seconds:.2f} s")


def start() -> None:
    """Runs the command."""
    cli.run(main)


if __name__ == "__main__":
    start()
