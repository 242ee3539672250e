"""A dataset: arrays in memory, where all of the paper's data fits, or streamed pictures."""

import dataclasses
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float32, Int32, UInt8

from invclr_jax.data.streaming.pictures import Pictures

Images = UInt8[np.ndarray, "n h w c"] | Float32[np.ndarray, "n factors"] | Pictures
Labels = Int32[np.ndarray, " n"] | Float32[np.ndarray, "n targets"]
Channels = tuple[float, ...]
"""One number per channel."""


class Unusable(ValueError):
    """Data exists but cannot be used; an error only if nothing better is found."""


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """The training or the test part of a dataset.

    Attributes:
      images: pictures `[n, h, w, c]`, an array, or `Pictures` that are read on demand; for
        Spirograph the factors `[n, 4]` to render them from.
      labels: classes `[n]`, or regression targets `[n, t]`, or None if there are none.
    """

    images: Images
    labels: Labels | None = None

    def __post_init__(self):
        if len(self.images) == 0:
            raise ValueError("the dataset is empty: at least one image is needed")
        if self.labels is not None and len(self.labels) != len(self.images):
            raise ValueError(
                f"{len(self.images)} images but {len(self.labels)} labels: give one per image"
            )

    def __len__(self) -> int:
        return len(self.images)

    @property
    def array(self) -> np.ndarray:
        """The images in memory; raises a ValueError if they are streamed."""
        if isinstance(self.images, Pictures):
            raise ValueError(
                f"these {len(self)} pictures are streamed, but all of them are needed in memory "
                "here: load them as folder or arrays, or take a few with images[rows]"
            )
        return self.images

    def take(self, rows: np.ndarray) -> "Split":
        """Some of the rows."""
        labels = None if self.labels is None else self.labels[rows]
        if isinstance(self.images, Pictures):
            return Split(self.images.take(rows), labels)
        return Split(self.array[rows], labels)

    @property
    def rows(self) -> Mapping[str, np.ndarray]:
        """What a training step gathers from: `image`, and `label` if there are labels."""
        rows = {"image": self.array}
        return rows if self.labels is None else rows | {"label": self.labels}


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test data with what a configuration needs to know about them.

    Attributes:
      name: the name it was loaded by.
      train: the training split.
      test: the test split, always complete; None if the user's data has none.
      num_classes: number of classes; None without labels and for regression.
      mean: channel means of the training images scaled to [0, 1]; None if not to be normalised.
      std: their standard deviations.
      label_names: names of the classes or of the regression targets, where known.
      transform: name of the transformation that suits the data, if a config names none.
    """

    name: str
    train: Split
    test: Split | None
    num_classes: int | None = None
    mean: Channels | None = None
    std: Channels | None = None
    label_names: tuple[str, ...] | None = None
    transform: str = "image"

    def __post_init__(self):
        if self.num_classes is None:
            return
        for part, split in (("training", self.train), ("test", self.test)):
            if split is not None and split.labels is not None:
                check_labels(split.labels, self.num_classes, f"the {part} set")


def check_labels(labels: np.ndarray, num_classes: int, where: str) -> None:
    """Refuses classes outside 0 … num_classes - 1."""
    wrong = (labels < 0) | (labels >= num_classes)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ValueError(
            f"label {int(labels[first])} of image {first} in {where} is out of range: "
            f"{num_classes} classes are numbered 0 to {num_classes - 1}"
        )


def channel_statistics(images: UInt8[np.ndarray, "n h w c"]) -> tuple[Channels, Channels]:
    """Mean and standard deviation of each channel of uint8 images, on the scale [0, 1].

    Computed from counts of the 256 values, a thousand images at a time, so that nothing as large as
    the dataset is allocated. A constant channel gets one grey level as its deviation, because the
    deviation is a divisor.
    """
    channels = images.shape[-1]
    counts = np.zeros((channels, 256))
    for start in range(0, len(images), 1000):
        pixels = images[start : start + 1000].reshape(-1, channels)
        counts += [np.bincount(channel, minlength=256) for channel in pixels.T]
    weights, levels = counts / counts.sum(1, keepdims=True), np.arange(256) / 255
    mean = weights @ levels
    std = np.sqrt(np.sum(weights * (levels - mean[:, None]) ** 2, axis=1)).clip(1 / 255)
    return tuple(mean.tolist()), tuple(std.tolist())


def own_dataset(
    name: str, train: Split, test: Split | None, names: tuple[str, ...] | None = None
) -> Dataset:
    """A dataset of the user's pictures: classes are counted, channel statistics measured."""
    given = [split.labels for split in (train, test) if split is not None]
    counts = [int(labels.max()) + 1 for labels in given if labels is not None]
    num_classes = len(names) if names else max(counts, default=None)
    mean, std = channel_statistics(train.array)
    return Dataset(name, train, test, num_classes, mean, std, names)
