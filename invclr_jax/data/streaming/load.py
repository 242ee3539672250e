"""`load_stream`: a data set of what is at a path, read during training."""

import os
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from invclr_jax.data.dataset import Dataset, Split, channel_statistics
from invclr_jax.data.decoding import check_shape
from invclr_jax.data.folder import list_pictures
from invclr_jax.data.splits import sample
from invclr_jax.data.streaming import files
from invclr_jax.data.streaming.pictures import Pictures
from invclr_jax.data.streaming.source import Source

TEST_NAMES = ("test", "validation", "val", "valid")
"""Names of test splits, in the order in which they are looked for."""

Part = tuple[Source, np.ndarray | None]
"""Pictures and their classes."""


class Columns(NamedTuple):
    """Where pictures and labels are; `label` is None to leave labels unread."""

    image: str
    label: str | None


class Found(NamedTuple):
    """The parts of a data set and the names of its classes."""

    train: Part
    test: Part | None
    names: tuple[str, ...] | None


def load_stream(
    path: pathlib.Path,
    *,
    size: int | None = None,
    channels: int = 3,
    format: str | None = None,
    train: str = "train",
    test: str | None = None,
    labels: bool = True,
    image_column: str = "image",
    label_column: str = "label",
    on_error: str = "refuse",
    workers: int | None = None,
    statistics: int = 1000,
) -> Dataset:
    """A data set whose pictures are read on demand.

    Args:
      path: class folders of PNG and JPEG files, possibly in `train` and `test`; or parquet files as
        Hugging Face writes them; or a version folder of tensorflow-datasets (array_record).
      size: pixels per side. The centre of a picture is cropped to a square and resized; None: 224.
      channels: 1 for grey, 3 for colour, with transparency 2 or 4.
      format: `folder`, `parquet` or `tfds`; None to detect it.
      train: name of the training split.
      test: name of the test split; None for the first of test, validation, val, valid.
      labels: False leaves labels of parquet and tfds unread; tfds reads every record for them.
      image_column: where parquet and tfds keep the pictures.
      label_column: where they keep the classes, integers from 0.
      on_error: `refuse` or `skip` a picture that cannot be read, see `Pictures`.
      workers: processes that read for training; None for one per core, 0 for threads.
      statistics: pictures from which channel means and deviations are measured; 0 for none.
    """
    size = 224 if size is None else size
    check_shape(size, channels)
    columns = Columns(image_column, label_column if labels else None)
    found = FORMATS[_format(path, format)](path, columns, train, test)

    def split(part: Part) -> Split:
        source, classes = part
        pictures = Pictures(
            source,
            (size, size, channels),
            on_error=on_error,
            workers=(os.cpu_count() or 1) if workers is None else workers,
            classes=classes,
        )
        return Split(pictures, classes)

    parts = split(found.train), found.test and split(found.test)
    mean, std = _statistics(parts[0], statistics)
    return Dataset("stream", *parts, _num_classes(found), mean, std, found.names)


def _num_classes(found: Found) -> int | None:
    if found.names is not None:
        return len(found.names)
    given = [part[1] for part in (found.train, found.test) if part is not None]
    return max((int(classes.max()) + 1 for classes in given if classes is not None), default=None)


def _statistics(train: Split, number: int):
    if number == 0:
        return None, None
    return channel_statistics(np.asarray(sample(train, number).images[:]))


# Formats -----------------------------------------------------------------------------------------


def _format(path: pathlib.Path, wanted: str | None) -> str:
    if wanted is not None and wanted not in FORMATS:
        raise ValueError(
            f"no format {wanted!r} (data.stream.format): use one of {', '.join(FORMATS)}"
        )
    if wanted is not None:
        return wanted
    if (path / "dataset_info.json").is_file():
        return "tfds"
    if _parquet_files(path):
        return "parquet"
    if path.is_dir() and any(entry.is_dir() for entry in path.iterdir()):
        return "folder"
    raise ValueError(
        f"{path} (config.data.path) cannot be streamed: give a folder of class "
        "folders, of parquet files, or of a version prepared by tensorflow-datasets"
    )


def _from_folders(path: pathlib.Path, _: Columns, train: str, test: str | None) -> Found:
    inside = {e.name for e in path.iterdir() if e.is_dir() and not e.name.startswith(".")}
    if test is not None:
        _check_split(train, inside, path)
    # A class may be called "train" (CIFAR-100 has one), but is hardly the only one.
    elif train not in inside or not inside <= {train, *TEST_NAMES}:
        paths, classes, names = list_pictures(path)
        return Found((files.Files(paths), classes), None, names)
    paths, classes, names = list_pictures(path / train)
    chosen = _test_name(inside, test, path)
    other = None
    if chosen is not None:
        others = list_pictures(path / chosen, names)
        other = files.Files(others[0]), others[1]
    return Found((files.Files(paths), classes), other, names)


def _parquet_files(path: pathlib.Path) -> list[pathlib.Path]:
    if path.is_file():
        return [path] if path.suffix == ".parquet" else []
    return sorted(path.rglob("*.parquet"))


def _from_parquet(path: pathlib.Path, columns: Columns, train: str, test: str | None) -> Found:
    by_split: dict[str, list[pathlib.Path]] = {}
    for file in _parquet_files(path):
        by_split.setdefault(_split_of(file, path), []).append(file)
    if not by_split:
        raise ValueError(f"{path} (config.data.path) holds no .parquet file")
    if len(by_split) == 1 and test is None:
        train = next(iter(by_split))
    _check_split(train, by_split, path)
    chosen = _test_name(set(by_split) - {train}, test, path)
    (part, names), other = _parquet_part(by_split[train], columns), None
    if chosen is not None:
        other, _ = _parquet_part(by_split[chosen], columns)
    return Found(part, other, names)


def _split_of(file: pathlib.Path, root: pathlib.Path) -> str:
    """`train` of `train-00000-of-00014.parquet` and of `train/0000.parquet`."""
    stem = file.stem.split("-")[0].split(".")[0]
    return file.parent.name if stem.isdigit() and file.parent != root else stem


def _parquet_part(paths: list[pathlib.Path], columns: Columns):
    import pyarrow.parquet

    present = pyarrow.parquet.read_schema(paths[0]).names
    for column in columns:
        if column is not None and column not in present:
            remedy = ", or labels=False (config.data.stream.labels) to do without" * (
                column == columns.label
            )
            raise ValueError(
                f"{paths[0]} has no column {column!r}, only {', '.join(present)}: name it with "
                f"config.data.stream.image_column or label_column{remedy}"
            )
    source = files.Parquet(paths, columns.image)
    if columns.label is None:
        return (source, None), None
    classes, names = files.parquet_labels(paths, columns.label)
    return (source, classes), names


def _from_tfds(path: pathlib.Path, columns: Columns, train: str, test: str | None) -> Found:
    splits, features = files.prepared_splits(path), files.prepared_features(path)
    _check_split(train, splits, path)
    for column in columns:
        if column is not None and column not in features:
            raise ValueError(
                f"{path} has no feature {column!r}, only {', '.join(features)}: name it with "
                "config.data.stream.image_column or label_column, or set labels=False"
            )
    chosen = _test_name(set(splits) - {train}, test, path)

    def part(split: str) -> Part:
        source = files.Prepared(path, split, columns.image)
        if columns.label is None:
            return source, None
        return source, files.prepared_labels(path, split, columns.image, columns.label)

    names = getattr(features[columns.label], "names", None) if columns.label else None
    return Found(part(train), part(chosen) if chosen else None, tuple(names) if names else None)


def _test_name(present: set[str], wanted: str | None, path: pathlib.Path) -> str | None:
    if wanted is None:
        return next((name for name in TEST_NAMES if name in present), None)
    _check_split(wanted, present, path)
    return wanted


def _check_split(name: str, present, path: pathlib.Path) -> None:
    if name not in present:
        raise ValueError(
            f"{path} has no split {name!r}, only {', '.join(sorted(present)) or 'none'}: set "
            "config.data.stream.train and config.data.stream.test"
        )


FORMATS: dict[str, Callable[..., Found]] = {
    "folder": _from_folders,
    "parquet": _from_parquet,
    "tfds": _from_tfds,
}
