import contextlib
import functools
import hashlib
import http.server
import io
import json
import sys
import threading

import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image

from invclr_jax import data
from invclr_jax.data import tfds_source
from tests.data import tiny_cifar


class Cifar10(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """A prepared set with the features of the stock builder."""

    VERSION = tfds.core.Version("3.0.2")

    def _info(self):
        features = {
            "id": tfds.features.Text(),
            "image": tfds.features.Image(shape=(32, 32, 3)),
            "label": tfds.features.ClassLabel(names=tiny_cifar.label_names("cifar10")),
        }
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, manager):
        splits = tiny_cifar.make("cifar10")
        return {part: self._generate_examples(part, *splits[part]) for part in splits}

    def _generate_examples(self, part, images, labels):
        for i, (image, label) in enumerate(zip(images, labels, strict=True)):
            file = io.BytesIO()  # tfds encodes arrays with TensorFlow, but takes files as such
            Image.fromarray(image).save(file, "PNG")
            file.seek(0)
            yield i, {"id": f"{part}_{i:05d}", "image": file, "label": int(label)}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tfds")
    Cifar10(data_dir=folder, file_format="array_record").download_and_prepare()
    return folder


@pytest.mark.parametrize("place", [".", "cifar10", "cifar10/3.0.2"])
def test_a_prepared_set_is_read_in_the_official_order(prepared, place):
    dataset = data.load("cifar10", path=prepared / place)
    for part, (images, labels) in tiny_cifar.make("cifar10").items():
        np.testing.assert_array_equal(getattr(dataset, part).images, images)
        np.testing.assert_array_equal(getattr(dataset, part).labels, labels)
    assert dataset.label_names == tuple(tiny_cifar.label_names("cifar10"))
    assert dataset.num_classes == 10
    assert "tensorflow" not in sys.modules


def test_the_default_folder_is_that_of_tfds(prepared, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(prepared))
    assert len(data.load("cifar10").train) == 15


def test_mocked_data(prepared):
    with tfds.testing.mock_data(num_examples=5):
        dataset = data.load("cifar10", path=prepared)
    assert dataset.train.images.shape == (5, 32, 32, 3)
    assert dataset.test.labels.shape == (5,)


def test_the_newest_whole_version_is_taken(tmp_path):
    for version in ("3.0.2", "3.0.10", "incomplete.X_9.0.0"):
        (tmp_path / "cifar10" / version).mkdir(parents=True)
        (tmp_path / "cifar10" / version / "dataset_info.json").write_text("{}")
    (tmp_path / "cifar10" / "4.0.0").mkdir()  # nothing in it
    assert tfds_source.find_prepared(tmp_path, "cifar10").name == "3.0.10"
    assert tfds_source.find_prepared(tmp_path, "cifar100") is None


@pytest.fixture
def prepared_for_tensorflow(prepared, tmp_path):
    version = tmp_path / "cifar10" / "3.0.2"
    version.mkdir(parents=True)
    for name in ("features.json", "label.labels.txt"):
        (version / name).write_bytes((prepared / "cifar10" / "3.0.2" / name).read_bytes())
    info = json.loads((prepared / "cifar10" / "3.0.2" / "dataset_info.json").read_text())
    (version / "dataset_info.json").write_text(json.dumps(info | {"fileFormat": "tfrecord"}))
    return tmp_path


def test_tfrecords_say_what_to_do(prepared_for_tensorflow):
    with pytest.raises(ValueError, match=r"needs TensorFlow.*--file_format=array_record"):
        data.load("cifar10", path=prepared_for_tensorflow)


def test_the_archive_that_tfds_fetched_replaces_tfrecords(prepared_for_tensorflow):
    archive = prepared_for_tensorflow / "downloads" / "kriz_cifar-10-binaryAbC.tar.gz"
    archive.parent.mkdir()
    contents = tiny_cifar.files("cifar10", "binary", tiny_cifar.make("cifar10"))
    tiny_cifar.write_archive(archive, "cifar10", "binary", contents)
    assert len(data.load("cifar10", path=prepared_for_tensorflow).train) == 15


# ---- fetching, from a server of our own ----


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Short(Quiet):
    """Promises the whole file and sends half of it."""

    def copyfile(self, source, target):
        target.write(source.read()[:20_000])


@contextlib.contextmanager
def serving(folder, handler=Quiet):
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=folder)
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/cifar-10-binary.tar.gz"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Starts a server with a tiny archive whose checksum tfds expects; gives the folder."""
    folder = tmp_path / "server"
    folder.mkdir()
    contents = tiny_cifar.files("cifar10", "binary", tiny_cifar.make("cifar10"))
    archive = tiny_cifar.write_archive(
        folder / "cifar-10-binary.tar.gz", "cifar10", "binary", contents
    )
    raw = archive.read_bytes()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    @contextlib.contextmanager
    def start(handler=Quiet):
        with serving(folder, handler) as url:
            info = tfds.core.download.checksums.UrlInfo(
                size=len(raw), checksum=hashlib.sha256(raw).hexdigest(), filename=archive.name
            )
            known = tfds.core.download.checksums.get_all_url_infos()
            monkeypatch.setattr(
                tfds.core.download.checksums, "get_all_url_infos", lambda: known | {url: info}
            )
            monkeypatch.setitem(tfds_source.URLS, "cifar10", url)
            yield archive

    return start


def test_fetching_without_tensorflow_and_only_once(server, tmp_path):
    with server():
        dataset = data.load("cifar10", path=tmp_path / "new", download=True)
    again = data.load("cifar10", path=tmp_path / "new", download=True)  # the server is gone
    for found in (dataset, again):
        np.testing.assert_array_equal(found.train.images, tiny_cifar.make("cifar10")["train"][0])
    assert "tensorflow" not in sys.modules


@pytest.mark.parametrize("fault", ["altered", "cut short"])
def test_what_was_fetched_badly_is_never_taken_for_whole(server, tmp_path, fault):
    with server(Short if fault == "cut short" else Quiet) as archive:
        if fault == "altered":
            archive.write_bytes(archive.read_bytes()[:-1] + b"\1")
        with pytest.raises((ValueError, ConnectionError), match=r"CIFAR-10"):
            data.load("cifar10", path=tmp_path / "new", download=True)
    with pytest.raises(FileNotFoundError, match="there is no CIFAR-10"):
        data.load("cifar10", path=tmp_path / "new")


def test_no_network_is_said_at_once(server, tmp_path):
    with server():
        pass
    with pytest.raises(ConnectionError, match=r"CIFAR-10 cannot be fetched from http://127"):
        data.load("cifar10", path=tmp_path / "new", download=True)


def test_the_real_checksums_are_known_to_tfds():
    known = tfds.core.download.checksums.get_all_url_infos()
    assert set(tfds_source.URLS.values()) <= set(known)
