"""A user's own pictures as PNG and JPEG files in a folder for each class."""

import concurrent.futures
import pathlib

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

from invclr_jax.data.dataset import Dataset, Split, own_dataset

SUFFIXES = (".png", ".jpg", ".jpeg")


def load_folder(path: pathlib.Path, *, size: int | None = None) -> Dataset:
    """Reads `path/CLASS/picture.png`, or `path/train/CLASS/…` with `path/test/CLASS/…`.

    Args:
      path: the folder; PNG and JPEG files, any size and shape.
      size: pixels a side to resize every picture to; None means 32.

    Returns:
      The dataset; classes are numbered in alphabetical order of their folders.
    """
    if not path.is_dir():
        raise NotADirectoryError(
            f"{path} (config.data.path) is a file where a folder of class folders is due: set "
            "config.data.name=arrays for an .npz file"
        )
    size = 32 if size is None else size
    if size < 1:
        raise ValueError(f"picture size {size} is not positive: set config.transform.size")
    parts = {entry.name for entry in path.iterdir() if entry.is_dir() and not _hidden(entry)}
    # A class may be called "train" (CIFAR-100 has it), but hardly be the only one.
    has_parts = "train" in parts and parts <= {"train", "test"}
    train, names = _folder_split(path / "train" if has_parts else path, size, None)
    test = _folder_split(path / "test", size, names)[0] if has_parts and "test" in parts else None
    return own_dataset("folder", train, test, names)


def _folder_split(
    folder: pathlib.Path, size: int, known: tuple[str, ...] | None
) -> tuple[Split, tuple[str, ...]]:
    entries = sorted(entry for entry in folder.iterdir() if not _hidden(entry))
    files = [entry for entry in entries if not entry.is_dir()]
    if files:
        raise ValueError(
            f"{files[0]} lies beside the class folders of {folder}: move pictures into a folder "
            "for their class (one folder for all if there are no classes) and other files away"
        )
    classes = known or tuple(entry.name for entry in entries)
    unknown = [entry.name for entry in entries if entry.name not in classes]
    if unknown:
        raise ValueError(f"{folder} has the class {unknown[0]!r}, which the training folder lacks")
    pictures = [(file, entry.name) for entry in entries for file in _pictures(entry)]
    if not pictures:
        raise ValueError(f"{folder} holds no pictures: put PNG or JPEG files into class folders")
    images = np.empty((len(pictures), size, size, 3), np.uint8)
    with concurrent.futures.ThreadPoolExecutor() as pool:  # decoding leaves Python's lock
        read = pool.map(lambda picture: _read_picture(picture[0], size), pictures)
        for i, image in enumerate(read):
            images[i] = image
    labels = np.array([classes.index(name) for _, name in pictures], np.int32)
    return Split(images, labels), classes


def _hidden(path: pathlib.Path) -> bool:
    return path.name.startswith(".")


def _pictures(folder: pathlib.Path) -> list[pathlib.Path]:
    files = sorted(entry for entry in folder.iterdir() if not _hidden(entry))
    for file in files:
        if file.suffix.lower() not in SUFFIXES or not file.is_file():
            raise ValueError(
                f"{file} is not a picture ({', '.join(SUFFIXES)}): move it out of the class folder"
            )
    return files


def _read_picture(path: pathlib.Path, size: int) -> UInt8[np.ndarray, "size size 3"]:
    try:
        with Image.open(path, formats=("PNG", "JPEG")) as image:
            if image.mode in ("F", "I") or image.mode.startswith("I;"):
                raise ValueError(f"mode {image.mode}: more than 8 bits a channel")
            upright = ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(
            f"{path} cannot be read as an 8-bit PNG or JPEG ({error}): replace or remove it"
        ) from None
    return np.asarray(upright.resize((size, size), Image.Resampling.BICUBIC))
