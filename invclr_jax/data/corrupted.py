"""Reader of CIFAR-10-C and CIFAR-100-C (Hendrycks and Dietterich, Zenodo 2535967 and 3555552).

A folder holds one file per corruption, such as `fog.npy`: the test pictures at severity 1,
then at severity 2, and so on up to 5. Their classes are in `labels.npy`.
"""

import os
import pathlib

import numpy as np

from invclr_jax.data.dataset import Split

SEVERITIES = 5
LABELS = "labels"


def load_corrupted(path: str | os.PathLike[str], name: str, severity: int) -> Split:
    """The test pictures under one corruption at one severity.

    Args:
      path: the unpacked folder `CIFAR-10-C` or `CIFAR-100-C`.
      name: of the corruption, as in its file name: `gaussian_noise`, `fog`, ...
      severity: from 1 to 5.

    Returns:
      8-bit images `[10000, 32, 32, 3]` and classes; only this part of the file is read.
    """
    if severity not in range(1, SEVERITIES + 1):
        raise ValueError(f"severity is {severity!r}: use an integer from 1 to {SEVERITIES}")
    images, labels = _read(path, name), _read(path, LABELS)
    if images.ndim != 4 or images.dtype != np.uint8 or len(images) % SEVERITIES:
        raise ValueError(
            f"{_file(path, name)} holds {images.dtype} of shape {images.shape}, not 8-bit images "
            f"[{SEVERITIES}·n, height, width, 3]: unpack the archive again"
        )
    if labels.shape != (len(images),):
        raise ValueError(
            f"{_file(path, LABELS)} holds labels of shape {labels.shape} for {len(images)} images: "
            "unpack the archive again"
        )
    each = len(images) // SEVERITIES
    rows = slice((severity - 1) * each, severity * each)
    return Split(np.array(images[rows]), np.array(labels[rows], np.int32))


def _read(path: str | os.PathLike[str], name: str) -> np.ndarray:
    file = _file(path, name)
    if not file.is_file():
        others = sorted(other.stem for other in pathlib.Path(path).glob("*.npy"))
        there = f"there are {', '.join(others)}" if others else "there is no .npy file"
        raise FileNotFoundError(
            f"{file} does not exist ({there}): give the unpacked folder CIFAR-10-C or CIFAR-100-C"
        )
    try:
        return np.load(file, mmap_mode="r", allow_pickle=False)
    except ValueError as reason:
        raise ValueError(f"{file} is not an npy file of numbers: {reason}") from None


def _file(path: str | os.PathLike[str], name: str) -> pathlib.Path:
    return pathlib.Path(path) / f"{name}.npy"
