"""Checksums of what a result depends on, so that a stored one is not used for anything else."""

import hashlib
from collections.abc import Callable, Iterable

import jax
import numpy as np

from invclr_jax.data import Dataset, Pictures, Split
from invclr_jax.data.streaming import source


def of_data(dataset: Dataset, train: Split, test: Split) -> str:
    """Checksum of the rows used, their shapes and types, and the names of data and labels."""
    names = f"{dataset.name} {dataset.num_classes} {dataset.label_names}"
    images = f"{of_images(train.images)} {of_images(test.images)}"
    return _digest(f"{names} {images}", (train.labels, test.labels))


def of_images(images: np.ndarray | Pictures) -> str:
    """Checksum of an array, or of the names, size and selection of streamed pictures."""
    if not isinstance(images, Pictures):
        return _digest("images", (images,))
    text = f"{source.fingerprint(images.source)} {images.shape} {images.on_error}"
    return _digest(text, (images.rows,))


def of_encoder(encode: Callable) -> str | None:
    """Checksum of the weights bound to an encoder; None if it does not expose them."""
    leaves = jax.tree.leaves(encode)
    if not leaves or not all(isinstance(leaf, jax.Array | np.ndarray) for leaf in leaves):
        return None
    return _digest(str(jax.tree.structure(leaves)), leaves)


def _digest(text: str, arrays: Iterable[jax.Array | np.ndarray | None]) -> str:
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        values = np.ascontiguousarray(array)
        digest.update(f"{values.dtype} {values.shape}".encode())
        digest.update(values.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:16]
