"""A user's own pictures as arrays in an `.npz` file."""

import pathlib

import numpy as np
from jaxtyping import UInt8

from invclr_jax.data.dataset import Dataset, Split, own_dataset


def load_arrays(path: pathlib.Path) -> Dataset:
    """Reads `train_images` and, if present, `train_labels`, `test_images` and `test_labels`.

    Args:
      path: an `.npz` file. Images are uint8 `[n, h, w, c]` with any number of channels, or floats
        in [0, 1], which are rounded to the 256 levels of uint8; labels are integers `[n]` from 0.

    Returns:
      The dataset, with channel statistics of the training images.
    """
    if path.is_dir():
        raise ValueError(
            f"{path} is a folder, expected an .npz file: for class folders of pictures use the "
            "name folder (config.data.name=folder)"
        )
    arrays = read_npz(path)
    if "train_images" not in arrays:
        raise ValueError(
            f"{path} has no array train_images, only {', '.join(arrays) or 'nothing'}: save it "
            "with np.savez(path, train_images=..., train_labels=...)"
        )
    if "test_labels" in arrays and "test_images" not in arrays:
        raise ValueError(f"{path} has test_labels but no test_images: give both or neither")
    train = _array_split(arrays, "train", path)
    test = _array_split(arrays, "test", path) if "test_images" in arrays else None
    return own_dataset("arrays", train, test)


def read_npz(path: pathlib.Path) -> dict[str, np.ndarray]:
    """All arrays of an `.npz` file; nothing in it is unpickled."""
    with path.open("rb") as file:
        try:
            return _plain_arrays(np.load(file, allow_pickle=False))
        # A damaged file can fail in any way, even by asking for more memory than there is.
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(
                f"{path} cannot be read as an .npz file of plain arrays ({reason}): save uint8 "
                "images and integer labels with np.savez; arrays of objects are never "
                "unpickled"
            ) from None


def _plain_arrays(stored: np.ndarray | np.lib.npyio.NpzFile) -> dict[str, np.ndarray]:
    if isinstance(stored, np.ndarray):
        raise ValueError("it is a single .npy array")
    arrays = {name: stored[name] for name in stored.files}
    others = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if others:
        raise ValueError(f"{others[0]} is not an array")
    return arrays


def _array_split(arrays: dict[str, np.ndarray], part: str, path: pathlib.Path) -> Split:
    images, labels = arrays[f"{part}_images"], arrays.get(f"{part}_labels")
    images = _as_uint8(images, f"{part}_images of {path}")
    if labels is None:
        return Split(images)
    if not np.issubdtype(labels.dtype, np.integer) or labels.shape != images.shape[:1]:
        raise ValueError(
            f"{part}_labels of {path} has dtype {labels.dtype} and shape {labels.shape}: "
            f"expected {len(images)} integers, one per image"
        )
    if labels.min() < 0 or labels.max() >= 2**31:
        raise ValueError(
            f"{part}_labels of {path} run from {labels.min()} to {labels.max()}: number the "
            "classes from 0"
        )
    return Split(images, labels.astype(np.int32))


def _as_uint8(images: np.ndarray, where: str) -> UInt8[np.ndarray, "n h w c"]:
    if images.ndim != 4 or 0 in images.shape:
        raise ValueError(
            f"{where} has shape {images.shape}: expected [n, h, w, channels] without empty axes "
            "(grey pictures [n, h, w]: add an axis, images[..., None])"
        )
    if images.shape[1] < images.shape[-1] and images.shape[1] in (1, 3, 4):
        raise ValueError(
            f"{where} has shape {images.shape}, which looks like [n, channels, h, w]: expected "
            "[n, h, w, channels], use images.transpose(0, 2, 3, 1)"
        )
    if images.dtype == np.uint8:
        return images
    if not np.issubdtype(images.dtype, np.floating):
        raise ValueError(f"{where} has dtype {images.dtype}: use uint8, or floats in [0, 1]")
    low, high = images.min(), images.max()
    if not (low >= 0 and high <= 1):  # also true for NaN
        raise ValueError(
            f"{where} are floats from {low:g} to {high:g}, outside [0, 1]: scale them, or save "
            "them as uint8 from 0 to 255"
        )
    return np.rint(images * 255).astype(np.uint8)
