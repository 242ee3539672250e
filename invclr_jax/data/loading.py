"""`load`: finds a dataset by name and path, whatever form it is in."""

import functools
import inspect
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from invclr_jax.data import cifar, tfds_source
from invclr_jax.data.arrays import load_arrays
from invclr_jax.data.dataset import Dataset, Unusable
from invclr_jax.data.folder import load_folder
from invclr_jax.data.spirograph import load_spirograph
from invclr_jax.data.streaming.load import load_stream

_ARCHIVE_ENDINGS = (".tar.gz", ".tgz", ".tar")


Loader = Callable[..., Dataset]


def load(
    name: str | Loader, *, path: str | os.PathLike[str] | None = None, **options: Any
) -> Dataset:
    """Loads a dataset into memory, or makes one that is read during training.

    Args:
      name: `cifar10`, `cifar100`, `arrays` (an `.npz` file), `folder` (class folders of pictures),
        `stream` (class folders, parquet or tfds, read on demand) or `spirograph`; or a
        function of your own, which is called with `path`, if one is given, and the options, and
        returns a `Dataset`.
      path: the file or folder to read. CIFAR is recognised by what the path contains: an official
        archive or the folder it unpacks to (binary or python version), a folder with either in it,
        or a tensorflow-datasets folder, which is also the default. Spirograph needs none.
      **options: `verify=True` and `download=False` for CIFAR, `size=32` and `channels=3` for
        `folder`, those of `streaming.load.load_stream` for `stream`, `seed=0`, `num_train` and
        `num_test` for Spirograph.

    Returns:
      The dataset: `.train` and `.test`, each with `.images` and `.labels`, and its constants.
    """
    if callable(name):
        return _own(name, path, options)
    if name not in _LOADERS:
        raise ValueError(
            f"no data set {name!r}: use one of {', '.join(NAMES)} (config.data.name), or pass the "
            "function that loads yours"
        )
    unknown = sorted(set(options) - set(options_of(name)))
    if unknown:
        allowed = ", ".join(options_of(name)) or "none"
        raise ValueError(f"{name!r} takes no option {unknown[0]!r}: its options are {allowed}")
    if name in cifar.TITLES:
        return load_cifar(name, _path(path), **options)
    if name == "spirograph":
        if path:
            raise ValueError(f"spirograph is generated, not read: leave out the path {path}")
        return load_spirograph(**options)
    place = _path(path)
    if place is None or not place.exists():
        raise FileNotFoundError(
            f"the path {path} (config.data.path) does not exist: the data set {name!r} needs "
            f"{'an .npz file' if name == 'arrays' else 'a folder of pictures'} there"
        )
    return _LOADERS[name](place, **options)


def _own(loader: Loader, path: str | os.PathLike[str] | None, options: dict[str, Any]) -> Dataset:
    dataset = loader(**options) if path is None else loader(path=path, **options)
    if not isinstance(dataset, Dataset):
        raise ValueError(
            f"{getattr(loader, '__name__', loader)} returned a {type(dataset).__name__}: it must "
            "return an invclr_jax.data.Dataset"
        )
    return dataset


def load_cifar(
    name: str, path: pathlib.Path | None, *, verify: bool = True, download: bool = False
) -> Dataset:
    """Loads CIFAR from wherever it is.

    Args:
      name: `cifar10` or `cifar100`.
      path: see `load`.
      verify: whether an archive with an official name must have the official checksum.
      download: whether to fetch the archive if there is no CIFAR at the path.

    Returns:
      The dataset; its rows are in the official order in every form.
    """
    place = path or tfds_source.default_folder()
    if place.is_file():
        return cifar.read_archive(place, name, verify)
    unusable: list[Unusable] = []
    for read in _readers(place, name, verify) if place.is_dir() else ():
        try:
            if (dataset := read()) is not None:
                return dataset
        except Unusable as error:
            unusable.append(error)
    if download and not place.name.endswith(_ARCHIVE_ENDINGS):
        return cifar.read_archive(tfds_source.fetch(name, place), name, verify=False)
    if unusable:
        raise unusable[0]
    raise FileNotFoundError(_missing(name, place))


def _readers(
    folder: pathlib.Path, name: str, verify: bool
) -> Iterator[Callable[[], Dataset | None]]:
    """Ways to read what a folder holds, in the order in which they are tried."""
    version = tfds_source.find_prepared(folder, name)
    if version is not None:
        yield functools.partial(tfds_source.read_prepared, version)
    layouts = [layout for layout in cifar.LAYOUTS if layout.name == name]
    for place in (folder, *(folder / layout.folder for layout in layouts)):
        if place.is_dir():
            yield functools.partial(cifar.read_folder, place, name)
    packed = (*(folder / layout.archive for layout in layouts), tfds_source.fetched(name, folder))
    for archive in packed:
        if archive is not None and archive.is_file():
            yield functools.partial(cifar.read_archive, archive, name, verify)


def _missing(name: str, place: pathlib.Path) -> str:
    own = [layout for layout in cifar.LAYOUTS if layout.name == name]
    archives = " or ".join(layout.archive for layout in own)
    folders = " or ".join(layout.folder for layout in own)
    return (
        f"there is no {cifar.TITLES[name]} at {place}, where config.data.path points. Provide it "
        f"in one of three ways: (1) set config.data.path to {archives} from "
        "https://www.cs.toronto.edu/~kriz/cifar.html, or to the folder it unpacks to "
        f"({folders}), or to a folder with one of these in it; (2) set config.data.path to a "
        f"tensorflow-datasets folder with {name} prepared as array_record; (3) set "
        "config.data.download=True to fetch the archive into that folder over the network"
    )


def _path(path: str | os.PathLike[str] | None) -> pathlib.Path | None:
    return pathlib.Path(path).expanduser() if path else None


_LOADERS: dict[str, Loader] = {
    "cifar10": load_cifar,
    "cifar100": load_cifar,
    "arrays": load_arrays,
    "folder": load_folder,
    "stream": load_stream,
    "spirograph": load_spirograph,
}
NAMES = tuple(_LOADERS)
"""What `load` can load."""


def options_of(name: str | Loader) -> tuple[str, ...]:
    """Names of the options that `load` takes for a dataset."""
    loader = name if callable(name) else _LOADERS[name]
    parameters = inspect.signature(loader).parameters.values()
    named = (p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))
    return tuple(option for option in named if option not in ("name", "path"))
