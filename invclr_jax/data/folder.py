"""A user's own pictures as PNG and JPEG files, one folder per class."""

import concurrent.futures
import logging
import pathlib

import numpy as np
from jaxtyping import Int32, UInt8

from invclr_jax.data.dataset import Dataset, Split, own_dataset
from invclr_jax.data.decoding import SUFFIXES, Shape, UnreadableError, check_shape, squeezed


def load_folder(path: pathlib.Path, *, size: int | None = None, channels: int = 3) -> Dataset:
    """Reads `path/CLASS/picture.png`, or `path/train/CLASS/…` with `path/test/CLASS/…`.

    Other files are skipped and counted in one line of the log.

    Args:
      path: the folder; PNG and JPEG files of any size and shape, also in subfolders of a
        class folder.
      size: pixels per side to resize every picture to; None means 32.
      channels: 1 for grey, 3 for colour, with transparency 2 or 4.

    Returns:
      The dataset; classes are numbered in alphabetical order of their folders.
    """
    if not path.is_dir():
        raise NotADirectoryError(
            f"{path} is a file, expected a folder of class folders: for an .npz file use the name "
            "arrays (config.data.name=arrays)"
        )
    size = 32 if size is None else size
    check_shape(size, channels)
    parts = {entry.name for entry in path.iterdir() if entry.is_dir() and not _hidden(entry)}
    # A class may be called "train" (CIFAR-100 has one), but is hardly the only one.
    has_parts = "train" in parts and parts <= {"train", "test"}
    shape = (size, size, channels)
    train, names = _folder_split(path / "train" if has_parts else path, shape, None)
    test = _folder_split(path / "test", shape, names)[0] if has_parts and "test" in parts else None
    return own_dataset("folder", train, test, names)


def _folder_split(
    folder: pathlib.Path, shape: Shape, known: tuple[str, ...] | None
) -> tuple[Split, tuple[str, ...]]:
    files, labels, names = list_pictures(folder, known)
    return Split(_read_pictures(files, shape), labels), names


def list_pictures(
    folder: pathlib.Path, known: tuple[str, ...] | None = None
) -> tuple[list[pathlib.Path], Int32[np.ndarray, " n"], tuple[str, ...]]:
    """The pictures of a folder of class folders, in order, their classes, and the classes' names.

    Args:
      folder: what to look through.
      known: names of the classes; None for those of the folders, in alphabetical order.
    """
    entries = sorted(entry for entry in folder.iterdir() if not _hidden(entry))
    folders = [entry for entry in entries if entry.is_dir()]
    skipped = [entry for entry in entries if not entry.is_dir()]
    outside = [entry for entry in skipped if _is_picture(entry)]
    if outside:
        raise ValueError(
            f"{outside[0]} is beside the class folders of {folder}: move pictures into a folder "
            "for their class (one folder for all if there are no classes)"
        )
    numbers = {name: number for number, name in enumerate(known or [e.name for e in folders])}
    unknown = [entry.name for entry in folders if entry.name not in numbers]
    if unknown:
        raise ValueError(f"{folder} has the class {unknown[0]!r}, which the training folder lacks")
    pictures: list[pathlib.Path] = []
    labels: list[int] = []
    for entry in folders:
        files = _files(entry)
        inside = [file for file in files if _is_picture(file)]
        pictures += inside
        labels += [numbers[entry.name]] * len(inside)
        skipped += [file for file in files if not _is_picture(file)]
    if not pictures:
        raise ValueError(f"{folder} holds no pictures: put PNG or JPEG files into class folders")
    if skipped:
        logging.getLogger(__name__).warning(
            "skipped %d files in %s that are not pictures (%s), such as %s",
            *(len(skipped), folder, ", ".join(SUFFIXES), skipped[0]),
        )
    return pictures, np.array(labels, np.int32), tuple(numbers)


def _hidden(path: pathlib.Path) -> bool:
    return path.name.startswith(".")


def _is_picture(path: pathlib.Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def _files(folder: pathlib.Path) -> list[pathlib.Path]:
    """All files below a class folder, in order, without hidden ones."""
    inside = ((path, path.relative_to(folder).parts) for path in folder.rglob("*"))
    return sorted(
        path
        for path, parts in inside
        if path.is_file() and not any(part.startswith(".") for part in parts)
    )


def _read_pictures(files: list[pathlib.Path], shape: Shape) -> UInt8[np.ndarray, "n size size c"]:
    images = np.empty((len(files), *shape), np.uint8)
    with concurrent.futures.ThreadPoolExecutor() as pool:  # decoding releases Python's lock
        for i, image in enumerate(pool.map(lambda file: _read_picture(file, shape), files)):
            images[i] = image
    return images


def _read_picture(path: pathlib.Path, shape: Shape) -> UInt8[np.ndarray, "size size c"]:
    try:
        return squeezed(path, shape)
    except UnreadableError as error:
        raise ValueError(f"{path} {error}: replace or remove it") from None
