"""A user's own pictures: arrays in an `.npz` file, or a folder of class folders."""

import concurrent.futures
import pathlib
import zipfile

import numpy as np
import PIL
from jaxtyping import UInt8
from PIL import Image, ImageOps

from invclr_jax.data.dataset import Dataset, Split, channel_statistics

SUFFIXES = (".png", ".jpg", ".jpeg")


def load_arrays(path: pathlib.Path) -> Dataset:
    """Reads `train_images`, and where there are any `train_labels`, `test_images`, `test_labels`.

    Args:
      path: an `.npz` file. Images are uint8 `[n, h, w, 3]`, or floats in [0, 1], which are rounded
        to the 256 levels of uint8; labels are whole numbers `[n]` from 0 on.

    Returns:
      The dataset, with channel statistics of the training images.
    """
    if path.is_dir():
        raise ValueError(
            f"{path} is a folder where an .npz file is due: set config.data.name=folder"
        )
    arrays = _read_npz(path)
    if "train_images" not in arrays:
        raise ValueError(
            f"{path} has no array train_images, only {', '.join(arrays) or 'nothing'}: save it "
            "with np.savez(path, train_images=..., train_labels=...)"
        )
    if "test_labels" in arrays and "test_images" not in arrays:
        raise ValueError(f"{path} has test_labels but no test_images: give both or neither")
    train = _array_split(arrays, "train", path)
    test = _array_split(arrays, "test", path) if "test_images" in arrays else None
    return _own("arrays", train, test)


def _read_npz(path: pathlib.Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise ValueError("it is a single .npy array")
            return {name: stored[name] for name in stored.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} cannot be read as an .npz file of plain arrays ({error}): save uint8 images "
            "and whole-number labels with np.savez; arrays of objects are never unpickled"
        ) from None


def _array_split(arrays: dict[str, np.ndarray], part: str, path: pathlib.Path) -> Split:
    images, labels = arrays[f"{part}_images"], arrays.get(f"{part}_labels")
    images = _as_uint8(images, f"{part}_images of {path}")
    if labels is None:
        return Split(images)
    if not np.issubdtype(labels.dtype, np.integer) or labels.shape != images.shape[:1]:
        raise ValueError(
            f"{part}_labels of {path} has dtype {labels.dtype} and shape {labels.shape}: "
            f"{len(images)} whole numbers are due, one for each image"
        )
    if labels.min() < 0 or labels.max() >= 2**31:
        raise ValueError(
            f"{part}_labels of {path} run from {labels.min()} to {labels.max()}: number the "
            "classes from 0"
        )
    return Split(images, labels.astype(np.int32))


def _as_uint8(images: np.ndarray, where: str) -> UInt8[np.ndarray, "n h w 3"]:
    if images.ndim != 4 or images.shape[-1] != 3 or 0 in images.shape:
        raise ValueError(
            f"{where} has shape {images.shape}: [n, h, w, 3] without empty axes is due "
            "([n, 3, h, w]: transpose(0, 2, 3, 1); grey pictures: repeat the channel three times)"
        )
    if images.dtype == np.uint8:
        return images
    if not np.issubdtype(images.dtype, np.floating):
        raise ValueError(f"{where} has dtype {images.dtype}: use uint8, or floats in [0, 1]")
    low, high = images.min(), images.max()
    if not (low >= 0 and high <= 1):  # also where there is a NaN
        raise ValueError(
            f"{where} are floats from {low:g} to {high:g}, outside [0, 1]: scale them, or save "
            "them as uint8 from 0 to 255"
        )
    return np.rint(images * 255).astype(np.uint8)


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
    return _own("folder", train, test, names)


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
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError) as error:
        raise ValueError(
            f"{path} cannot be read as an 8-bit PNG or JPEG ({error}): replace or remove it"
        ) from None
    return np.asarray(upright.resize((size, size), Image.Resampling.BICUBIC))


def _own(
    name: str, train: Split, test: Split | None, names: tuple[str, ...] | None = None
) -> Dataset:
    labels = [split.labels for split in (train, test) if split and split.labels is not None]
    num_classes = (
        len(names) if names else max((int(part.max()) + 1 for part in labels), default=None)
    )
    mean, std = channel_statistics(train.images)
    return Dataset(name, train, test, num_classes, mean, std, names)
