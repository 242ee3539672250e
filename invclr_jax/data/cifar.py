"""CIFAR-10 and CIFAR-100 as their authors publish them: binary or python version, packed or not."""

import dataclasses
import logging
import pathlib
from collections.abc import Collection

import numpy as np
from jaxtyping import UInt8

from invclr_jax.data import archives, safe_pickle
from invclr_jax.data.dataset import Channels, Dataset, Split, Unusable, check_labels

TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
NUM_CLASSES = {"cifar10": 10, "cifar100": 100}
OFFICIAL_SIZES = (50_000, 10_000)
STATISTICS: dict[str, tuple[Channels, Channels]] = {
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": ((0.5071, 0.4865, 0.4409), (0.2009, 0.1984, 0.2023)),
}
"""Channel means and standard deviations that the paper's authors normalise with."""

_PIXELS = 3 * 32 * 32


@dataclasses.dataclass(frozen=True)
class Layout:
    """One of the four official forms.

    Attributes:
      name: `cifar10` or `cifar100`.
      version: `binary` or `python`.
      archive: file name of the official archive.
      folder: folder it unpacks to.
      train: training files.
      test: test file.
      names: file with the class names, which may be missing.
    """

    name: str
    version: str
    archive: str
    folder: str
    train: tuple[str, ...]
    test: str
    names: str

    @property
    def files(self) -> tuple[str, ...]:
        """The files that must be present."""
        return (*self.train, self.test)


def _layouts():
    batches = tuple(f"data_batch_{i}" for i in range(1, 6))
    yield Layout(
        *("cifar10", "binary", "cifar-10-binary.tar.gz", "cifar-10-batches-bin"),
        *(tuple(f"{batch}.bin" for batch in batches), "test_batch.bin", "batches.meta.txt"),
    )
    yield Layout(
        *("cifar10", "python", "cifar-10-python.tar.gz", "cifar-10-batches-py"),
        *(batches, "test_batch", "batches.meta"),
    )
    yield Layout(
        *("cifar100", "binary", "cifar-100-binary.tar.gz", "cifar-100-binary"),
        *(("train.bin",), "test.bin", "fine_label_names.txt"),
    )
    yield Layout(
        *("cifar100", "python", "cifar-100-python.tar.gz", "cifar-100-python"),
        *(("train",), "test", "meta"),
    )


LAYOUTS = tuple(_layouts())


def recognise(files: Collection[str], name: str) -> Layout | None:
    """The layout these files belong to: complete ones first, and of those the ones for `name`."""
    present = set(files)
    candidates = [layout for layout in LAYOUTS if present & set(layout.files)]
    return min(
        candidates,
        key=lambda layout: (not present >= set(layout.files), layout.name != name),
        default=None,
    )


def read_folder(folder: pathlib.Path, name: str) -> Dataset | None:
    """Reads an unpacked archive; None if the folder holds no CIFAR file."""
    files = {entry.name for entry in folder.iterdir() if entry.is_file()}
    layout = recognise(files, name)
    if layout is None:
        return None
    _check_whole(layout, name, files, folder)
    wanted = files & {*layout.files, layout.names}
    return _decode(layout, {file: (folder / file).read_bytes() for file in wanted}, folder)


def read_archive(path: pathlib.Path, name: str, verify: bool) -> Dataset:
    """Reads an archive; with `verify`, an official name requires the official checksum."""
    if verify:
        archives.check_md5(path)
    wanted = {file for layout in LAYOUTS for file in (*layout.files, layout.names)}
    contents = archives.read_members(path, wanted)
    layout = recognise(contents, name)
    if layout is None:
        raise ValueError(f"{path} (config.data.path) holds no {TITLES[name]} file")
    _check_whole(layout, name, contents, path)
    return _decode(layout, contents, path)


def _check_whole(layout: Layout, name: str, present: Collection[str], path: pathlib.Path) -> None:
    missing = [file for file in layout.files if file not in present]
    if missing:
        raise Unusable(
            f"{path} is an incomplete {TITLES[layout.name]} ({layout.version} version): "
            f"{', '.join(missing)} missing; unpack or fetch it again"
        )
    if layout.name != name:
        raise Unusable(
            f"{path} holds {TITLES[layout.name]}, not {TITLES[name]}: set "
            f"config.data.name={layout.name} or another config.data.path"
        )


def _decode(layout: Layout, contents: dict[str, bytes], path: pathlib.Path) -> Dataset:
    def split(files: tuple[str, ...]) -> Split:
        decode = _decode_binary if layout.version == "binary" else _decode_python
        pieces = [decode(contents[file], layout, f"{path}: {file}") for file in files]
        pixels, labels = zip(*pieces, strict=True)
        return Split(_to_images(pixels), np.concatenate(labels).astype(np.int32))

    names = contents.get(layout.names)
    return make_dataset(
        layout.name,
        split(layout.train),
        split((layout.test,)),
        None if names is None else _label_names(names, layout, f"{path}: {layout.names}"),
    )


def make_dataset(name: str, train: Split, test: Split, names: tuple[str, ...] | None) -> Dataset:
    """A CIFAR dataset with its constants; wrong label names are dropped rather than refused."""
    if (len(train), len(test)) != OFFICIAL_SIZES:
        logging.getLogger(__name__).warning(
            "this %s has %d training and %d test images, the official one has %d and %d",
            *(TITLES[name], len(train), len(test), *OFFICIAL_SIZES),
        )
    num_classes, (mean, std) = NUM_CLASSES[name], STATISTICS[name]
    names = names if names and len(names) == num_classes else None
    return Dataset(name, train, test, num_classes, mean, std, names)


def black(name: str) -> Dataset:
    """The official training set's shapes and constants with black pictures, which need no memory.

    Args:
      name: `cifar10` or `cifar100`.
    """
    images = np.broadcast_to(np.zeros((), np.uint8), (OFFICIAL_SIZES[0], 32, 32, 3))
    labels = np.zeros(len(images), np.int32)
    return Dataset(name, Split(images, labels), None, NUM_CLASSES[name], *STATISTICS[name])


def _decode_binary(raw: bytes, layout: Layout, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels `[n, 3072]` and classes `[n]` of records (label bytes, then 3072 pixel bytes)."""
    label_bytes = 1 if layout.name == "cifar10" else 2  # CIFAR-100: coarse, then fine
    length = label_bytes + _PIXELS
    if len(raw) == 0 or len(raw) % length:
        raise ValueError(
            f"{where} has {len(raw)} bytes, which is not a positive multiple of {length}: "
            "it is empty, truncated or not a file of the binary version"
        )
    records = np.frombuffer(raw, np.uint8).reshape(-1, length)
    labels = records[:, label_bytes - 1]
    check_labels(labels, NUM_CLASSES[layout.name], where)
    return records[:, label_bytes:], labels


def _decode_python(raw: bytes, layout: Layout, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels `[n, 3072]` and classes `[n]` of a pickled dictionary."""
    batch = safe_pickle.loads(raw, where)
    key = "labels" if layout.name == "cifar10" else "fine_labels"
    pixels, labels = batch.get("data"), _integers(batch.get(key))
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2:
        raise ValueError(f"{where} has no uint8 array 'data' of shape [n, {_PIXELS}]")
    if pixels.shape[1] != _PIXELS or len(pixels) == 0:
        raise ValueError(f"{where} has 'data' of shape {pixels.shape}, expected [n, {_PIXELS}]")
    if labels is None or labels.shape != (len(pixels),):
        raise ValueError(f"{where} needs {len(pixels)} integers in {key!r}, one per picture")
    check_labels(labels, NUM_CLASSES[layout.name], where)
    return pixels, labels


def _integers(values) -> np.ndarray | None:
    if isinstance(values, list) and all(type(value) is int for value in values):
        return np.array(values, object)  # not yet checked, so possibly beyond any integer type
    return values if isinstance(values, np.ndarray) else None


def _to_images(pieces: tuple[np.ndarray, ...]) -> UInt8[np.ndarray, "n 32 32 3"]:
    """Rows of three colour planes as images; plane by plane, which is three times as fast."""
    images = np.empty((sum(map(len, pieces)), 32 * 32, 3), np.uint8)
    start = 0
    for piece in pieces:
        rows = slice(start, start + len(piece))
        for channel, plane in enumerate(np.split(piece, 3, axis=1)):
            images[rows, :, channel] = plane
        start = rows.stop
    return images.reshape(-1, 32, 32, 3)


def _label_names(raw: bytes, layout: Layout, where: str) -> tuple[str, ...]:
    if layout.version == "binary":
        return tuple(raw.decode("latin1").split())
    key = "label_names" if layout.name == "cifar10" else "fine_label_names"
    names = safe_pickle.loads(raw, where).get(key, ())
    return tuple(n.decode("latin1") if isinstance(n, bytes) else str(n) for n in names)
