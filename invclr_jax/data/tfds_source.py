"""CIFAR through tensorflow-datasets, without TensorFlow.

A set that is already prepared is read with `tfds.data_source`. The stock CIFAR builders need
TensorFlow to prepare one, so fetching stops at the archive: tfds' download manager gets it under a
temporary name, checks size and SHA-256, and renames it; our own reader does the rest.
"""

import os
import pathlib
import urllib.error
import urllib.request

import numpy as np

from invclr_jax.data.cifar import TITLES, make_dataset
from invclr_jax.data.dataset import Dataset, Split, Unusable

URLS = {
    "cifar10": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "cifar100": "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
}


def default_folder() -> pathlib.Path:
    """Where tensorflow-datasets keeps its data unless told otherwise."""
    return pathlib.Path(os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets").expanduser()


def find_prepared(folder: pathlib.Path, name: str) -> pathlib.Path | None:
    """The newest prepared version of a dataset in or below a tensorflow-datasets folder.

    Args:
      folder: the data folder, the dataset's folder in it, or the folder of one version.
      name: `cifar10` or `cifar100`.

    Returns:
      The version's folder `…/name/version`, or None.
    """
    if folder.parent.name == name and (folder / "dataset_info.json").is_file():
        return folder
    versions = [
        info.parent
        for place in (folder / name, folder)
        if place.name == name and place.is_dir()
        for info in place.glob("*/dataset_info.json")
        # what is being prepared, or was interrupted, is in "incomplete.…"
        if all(number.isdigit() for number in info.parent.name.split("."))
    ]
    return max(versions, key=lambda v: [int(n) for n in v.name.split(".")], default=None)


def read_prepared(version: pathlib.Path) -> Dataset:
    """Reads a prepared CIFAR through `tfds.data_source`, in the official order.

    Args:
      version: the folder `…/name/version`; the files in it must be in the array_record format.

    Returns:
      The dataset.
    """
    import tensorflow_datasets as tfds  # imported here because it takes a second

    name = version.parent.name
    try:
        sources = tfds.data_source(
            f"{name}:{version.name}",
            split=["train", "test"],
            data_dir=version.parent.parent,
            download=False,
        )
    except NotImplementedError:  # how tfds refuses formats without random access
        raise Unusable(
            f"{version} is prepared in a format that needs TensorFlow: prepare it with "
            "--file_format=array_record, or set config.data.path to the official archive"
        ) from None
    train, test = (_read(source, version) for source in sources)
    names = sources[0].dataset_info.features["label"].names
    return make_dataset(name, train, test, tuple(names))


def _read(source, version: pathlib.Path) -> Split:
    examples = [source[i] for i in range(len(source))]
    if not examples:
        raise ValueError(f"{version} holds no pictures: prepare it again")
    if "id" in examples[0]:  # tfds shuffles while preparing; ids count in the official order
        examples.sort(key=lambda example: example["id"])
    images = np.stack([example["image"] for example in examples])
    return Split(images, np.array([example["label"] for example in examples], np.int32))


def fetch(name: str, folder: pathlib.Path) -> pathlib.Path:
    """Fetches the official archive with tfds' download manager, or finds the one it fetched before.

    Args:
      name: `cifar10` or `cifar100`.
      folder: a tensorflow-datasets folder; archives go to its `downloads`.

    Returns:
      The archive, whole and with the right checksum.
    """
    import tensorflow_datasets as tfds

    url = URLS[name]
    manager = tfds.download.DownloadManager(
        download_dir=folder / "downloads", dataset_name=name, force_checksums_validation=True
    )
    try:
        # Without a network tfds retries for minutes: try once first.
        if fetched(name, folder) is None:
            request = urllib.request.Request(url, method="HEAD")
            urllib.request.urlopen(request, timeout=20).close()
        return pathlib.Path(manager.download(url))
    except (OSError, tfds.download.DownloadError) as error:
        raise ConnectionError(f"{TITLES[name]} cannot be fetched from {url}: {error}") from None
    except tfds.download.download_manager.NonMatchingChecksumError as error:
        raise ValueError(f"what {url} sent is not {TITLES[name]}: {error}") from None


def fetched(name: str, folder: pathlib.Path) -> pathlib.Path | None:
    """The archive that an earlier `fetch` (or tfds itself) left in the folder, if any."""
    stem = URLS[name].rsplit("/", 1)[-1].removesuffix(".tar.gz")
    places = (folder / "downloads" / name, folder / "downloads")
    files = (file for place in places for file in place.glob(f"*{stem}*.tar.gz"))
    return next((file for file in files if file.is_file()), None)
