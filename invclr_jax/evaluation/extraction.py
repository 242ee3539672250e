"""Features of a user's own arrays or pictures, behind the extract command."""

import dataclasses
import pathlib
import zipfile
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from invclr_jax.data.arrays import read_npz
from invclr_jax.data.decoding import squeezed
from invclr_jax.data.streaming.load import load_stream
from invclr_jax.data.streaming.pictures import Pictures
from invclr_jax.evaluation.progress import Progress, bar
from invclr_jax.files import replacing


@runtime_checkable
class Extractor(Protocol):
    """What extraction needs from an encoder."""

    def encode(self, images: Any, *, batch_size: int, progress: Progress | None) -> Any:
        """Plain images -> z."""
        ...

    def represent(
        self,
        x: Any,
        key: Any,
        num_samples: int,
        *,
        batch_size: int,
        progress: Progress | None,
        first: int = 0,
    ) -> Any:
        """The average of z over random transformations; those of row i depend on first + i."""
        ...


def extract(
    encoder: Extractor,
    x: np.ndarray | Pictures,
    *,
    num_samples: int,
    seed: int = 0,
    batch_size: int = 500,
    title: str = "features",
) -> np.ndarray:
    """Features `[n, d]` of images (or factors), with a progress bar on a terminal.

    Args:
      encoder: what to use.
      x: images, or what the encoder's transform takes.
      num_samples: M; 0 for plain images.
      seed: of the transformations.
      batch_size: inputs that each device takes at a time; changes no feature.
      title: of the progress bar.
    """
    with bar(title, len(x)) as progress:
        if num_samples == 0:
            return np.asarray(encoder.encode(x, batch_size=batch_size, progress=progress))
        key = jax.random.key(seed)
        z = encoder.represent(x, key, num_samples, batch_size=batch_size, progress=progress)
        return np.asarray(z)


def read_inputs(path: pathlib.Path, size: int) -> dict[str, np.ndarray | Pictures]:
    """Arrays by name from an npz file; or pictures, resized to `size`, that are read on demand.

    Args:
      path: an npz file, or class folders, or parquet files.
      size: side of pictures in pixels; the whole picture is squeezed into the square.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} (--input) does not exist")
    arrays: dict[str, np.ndarray | Pictures] = {}
    if not path.is_dir() and path.suffix != ".parquet":
        arrays |= read_npz(path)
        return arrays
    dataset = load_stream(path, size=size, workers=0, statistics=0)
    for name, split in (("train", dataset.train), ("test", dataset.test)):
        if split is not None:
            assert isinstance(split.images, Pictures)  # that is what a stream has
            arrays[f"{name}_images"] = dataclasses.replace(split.images, decode=squeezed)
            if split.labels is not None:
                arrays[f"{name}_labels"] = split.labels
    return arrays


def divided(inputs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Images (or factors) and labels, each by name."""
    labels = {name: x for name, x in inputs.items() if x.ndim == 1}
    return {name: x for name, x in inputs.items() if x.ndim != 1}, labels


def extract_rows(
    encoder: Extractor,
    x: np.ndarray | Pictures,
    rows: range,
    *,
    num_samples: int,
    seed: int,
    batch_size: int,
) -> np.ndarray:
    """The features that `extract` gives for some rows, bit for bit.

    Args:
      encoder: what to use.
      x: all inputs.
      rows: consecutive ones of them.
      num_samples: as for `extract`.
      seed: likewise.
      batch_size: likewise.
    """
    # Batches are shaped as for the whole: the last part of x is padded with its last row.
    least = min(batch_size, len(x))
    index = np.minimum(np.arange(rows.start, max(rows.stop, rows.start + least)), len(x) - 1)
    inputs = x[index]
    if num_samples == 0:
        z = encoder.encode(inputs, batch_size=batch_size, progress=None)
    else:
        key = jax.random.key(seed)
        z = encoder.represent(
            inputs, key, num_samples, batch_size=batch_size, progress=None, first=rows.start
        )
    return np.asarray(z)[: len(rows)]


def write_npz(path: pathlib.Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes an `.npz` file as a whole; unlike `np.savez` it takes any names, even `file`."""
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def check_input(name: str, x: np.ndarray | Pictures, *, factors: bool) -> None:
    """Refuses what cannot be encoded.

    Args:
      name: of the array.
      x: the array.
      factors: whether rows of numbers are expected instead of images.
    """
    if 0 in x.shape or x.ndim != (2 if factors else 4):
        expected = "factors [n, number]" if factors else "images [n, h, w, channels]"
        raise ValueError(f"array {name!r} has shape {x.shape}: expected {expected}")
    if isinstance(x, Pictures):
        return
    if factors:
        if x.dtype.kind != "f" or not np.isfinite(x).all():
            raise ValueError(f"array {name!r} is {x.dtype}: expected finite floats")
    elif x.dtype != np.uint8 and not (x.dtype.kind == "f" and x.min() >= 0 and x.max() <= 1):
        raise ValueError(f"array {name!r} is {x.dtype}: use uint8, or floats in [0, 1]")
