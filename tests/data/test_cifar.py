import os
import tarfile

import numpy as np
import pytest

from invclr_jax import data
from invclr_jax.data import archives
from tests.data import tiny_cifar


def assert_holds(dataset, name, splits):
    for part, (images, labels) in splits.items():
        split = getattr(dataset, part)
        np.testing.assert_array_equal(split.images, images)
        np.testing.assert_array_equal(split.labels, labels)
        assert split.images.dtype == np.uint8
        assert split.labels.dtype == np.int32
        assert split.images.flags.c_contiguous
    assert dataset.num_classes == tiny_cifar.CLASSES[name]


@pytest.mark.parametrize(("name", "version"), tiny_cifar.FORMS)
@pytest.mark.parametrize("place", ["folder", "parent", "archive", "tar", "beside"])
def test_every_form_is_found_by_what_it_contains(tmp_path, name, version, place):
    splits = tiny_cifar.make(name)
    contents = tiny_cifar.files(name, version, splits)
    if place in ("folder", "parent"):
        path = tiny_cifar.write_folder(tmp_path, name, version, contents)
    else:
        mode = "w" if place == "tar" else "w:gz"
        path = tiny_cifar.write_archive(tmp_path / "any", name, version, contents, mode)
    if place == "beside":
        path = path.rename(tmp_path / f"{_official(name, version)}")
    dataset = data.load(
        name,
        path=tmp_path if place in ("parent", "beside") else str(path),
        verify=place != "beside",
    )
    assert_holds(dataset, name, splits)
    assert dataset.label_names == tuple(tiny_cifar.label_names(name))


def _official(name, version):
    return f"cifar-{name[5:]}-{version}.tar.gz"


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_python_version_written_by_python_3(tmp_path, protocol):
    splits = tiny_cifar.make("cifar100")
    contents = tiny_cifar.files("cifar100", "python", splits, tiny_cifar.python3_pickle(protocol))
    tiny_cifar.write_folder(tmp_path, "cifar100", "python", contents)
    assert_holds(data.load("cifar100", path=tmp_path), "cifar100", splits)


def test_class_names_may_be_missing(tmp_path):
    contents = tiny_cifar.files("cifar10", "binary", tiny_cifar.make("cifar10"))
    del contents["batches.meta.txt"]
    tiny_cifar.write_folder(tmp_path, "cifar10", "binary", contents)
    assert data.load("cifar10", path=tmp_path).label_names is None


def test_other_sizes_than_the_official_ones_are_mentioned(tmp_path, contents, caplog):
    tiny_cifar.write_folder(tmp_path, "cifar10", "binary", contents)
    data.load("cifar10", path=tmp_path)
    assert "15 training and 4 test images, the official one has 50000 and 10000" in caplog.text


def test_statistics_are_those_the_authors_normalise_by(tmp_path):
    contents = tiny_cifar.files("cifar10", "binary", tiny_cifar.make("cifar10"))
    tiny_cifar.write_folder(tmp_path, "cifar10", "binary", contents)
    dataset = data.load("cifar10", path=tmp_path)
    assert dataset.mean == (0.4914, 0.4822, 0.4465)
    assert dataset.std == (0.2023, 0.1994, 0.2010)


# ---- bad input ----


@pytest.fixture
def contents():
    return tiny_cifar.files("cifar10", "binary", tiny_cifar.make("cifar10"))


@pytest.mark.parametrize("version", ["binary", "python"])
def test_truncated_archives_are_refused_wherever_they_end(tmp_path, version):
    contents = tiny_cifar.files("cifar10", version, tiny_cifar.make("cifar10"))
    whole = tiny_cifar.write_archive(tmp_path / "a.tgz", "cifar10", version, contents).read_bytes()
    cut = tmp_path / "cut.tgz"
    for length in [0, 1, 5, 100, *(len(whole) * i // 8 for i in range(1, 8)), len(whole) - 1]:
        cut.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"cut\.tgz is not a complete tar archive"):
            data.load("cifar10", path=cut)


def test_truncated_uncompressed_archives_are_refused(tmp_path, contents):
    path = tiny_cifar.write_archive(tmp_path / "a.tar", "cifar10", "binary", contents, "w")
    whole, cut = path.read_bytes(), tmp_path / "cut.tar"
    end = whole.rindex(b"class_9") - 2000  # before the last file with pictures ends
    for length in [1000, 4000, end // 2, end // 1024 * 1024, end]:
        cut.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"is not a complete tar archive|incomplete"):
            data.load("cifar10", path=cut)


def test_damaged_archive_is_refused(tmp_path, contents):
    path = tiny_cifar.write_archive(tmp_path / "a.tgz", "cifar10", "binary", contents)
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="is not a complete tar archive"):
        data.load("cifar10", path=path)


@pytest.mark.parametrize("raw", [b"", b"\0" * 3072, b"\0" * 3074, b"\0" * (2 * 3073 + 1)])
def test_wrong_record_length(tmp_path, contents, raw):
    folder = tiny_cifar.write_folder(tmp_path, "cifar10", "binary", contents)
    (folder / "data_batch_3.bin").write_bytes(raw)
    with pytest.raises(ValueError, match=rf"data_batch_3.bin has {len(raw)} bytes.*3073"):
        data.load("cifar10", path=folder)


@pytest.mark.parametrize(("name", "version"), tiny_cifar.FORMS)
def test_labels_out_of_range(tmp_path, name, version):
    splits = tiny_cifar.make(name)
    splits["train"][1][-1] = tiny_cifar.CLASSES[name]
    folder = tiny_cifar.write_folder(
        tmp_path, name, version, tiny_cifar.files(name, version, splits)
    )
    file = "data_batch_5" if name == "cifar10" else "train"
    label = tiny_cifar.CLASSES[name]
    with pytest.raises(ValueError, match=f"label {label} of image .*{file}.* is out of range"):
        data.load(name, path=folder)


def test_missing_file_is_not_taken_for_whole(tmp_path, contents):
    del contents["data_batch_4.bin"]
    tiny_cifar.write_folder(tmp_path, "cifar10", "binary", contents)
    with pytest.raises(ValueError, match=r"incomplete CIFAR-10.*data_batch_4\.bin missing"):
        data.load("cifar10", path=tmp_path)


def test_an_archive_replaces_an_incomplete_folder(tmp_path, contents):
    tiny_cifar.write_archive(tmp_path / "cifar-10-binary.tar.gz", "cifar10", "binary", contents)
    del contents["data_batch_4.bin"]
    tiny_cifar.write_folder(tmp_path, "cifar10", "binary", contents)
    assert len(data.load("cifar10", path=tmp_path, verify=False).train) == 15


def test_other_cifar_says_which_it_is(tmp_path, contents):
    folder = tiny_cifar.write_folder(tmp_path, "cifar10", "binary", contents)
    with pytest.raises(
        ValueError, match=r"holds CIFAR-10, not CIFAR-100.*config.data.name=cifar10"
    ):
        data.load("cifar100", path=folder)


def test_missing_dataset_names_path_key_and_three_ways(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "cifar-10-binary.tar.gz"):
        with pytest.raises(FileNotFoundError) as error:
            data.load("cifar10", path=path)
        for words in (str(path), "config.data.path", "(1)", "(2)", "(3)", "download=True"):
            assert words in str(error.value)


def test_a_file_that_is_no_archive(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a picture\n" * 100)
    with pytest.raises(ValueError, match=r"notes\.txt is not a complete tar archive"):
        data.load("cifar10", path=path)


def test_archive_of_something_else(tmp_path):
    path = tiny_cifar.write_archive(tmp_path / "a.tar", "cifar10", "binary", {"a.txt": b"a"}, "w")
    with pytest.raises(ValueError, match="holds no CIFAR-10 file"):
        data.load("cifar10", path=path)


# ---- checksums and hostile members ----


def test_checksum_of_official_names_is_checked(tmp_path, contents, monkeypatch):
    path = tmp_path / "cifar-10-binary.tar.gz"
    tiny_cifar.write_archive(path, "cifar10", "binary", contents)
    with pytest.raises(
        ValueError, match=r"MD5 checksum \w+, but the official .*verify=False"
    ) as error:
        data.load("cifar10", path=path)
    found = str(error.value).split("checksum ")[1].split(",")[0]
    assert len(data.load("cifar10", path=path, verify=False).train) == 15
    monkeypatch.setitem(archives.MD5, path.name, found)
    assert len(data.load("cifar10", path=path).train) == 15


def _member(name, kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    "member",
    [
        _member("../evil"),
        _member("/tmp/evil"),
        _member("cifar-10-batches-bin/../../evil"),
        _member("C:\\evil"),
        _member("..\\evil"),
        _member("cifar-10-batches-bin/test_batch.bin", tarfile.SYMTYPE, "/etc/passwd"),
        _member("cifar-10-batches-bin/test_batch.bin", tarfile.LNKTYPE, "../evil"),
        _member("cifar-10-batches-bin/null", tarfile.CHRTYPE),
        _member("cifar-10-batches-bin/pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda member: f"{member.name}-{member.type.decode()}",
)
def test_hostile_members_are_refused(tmp_path, contents, member):
    path = tmp_path / "a.tgz"
    tiny_cifar.write_archive(path, "cifar10", "binary", contents, extra=[member])
    with pytest.raises(ValueError, match=r"points outside|is a link or a device"):
        data.load("cifar10", path=path)


def test_members_that_come_twice_or_are_too_large_are_refused(tmp_path, contents, monkeypatch):
    twice = _member("elsewhere/test_batch.bin")
    path = tmp_path / "a.tgz"
    tiny_cifar.write_archive(path, "cifar10", "binary", contents, extra=[twice])
    with pytest.raises(ValueError, match="occurs twice"):
        data.load("cifar10", path=path)
    monkeypatch.setattr(archives, "LARGEST", 1000)
    tiny_cifar.write_archive(path, "cifar10", "binary", contents)
    with pytest.raises(ValueError, match=r"data_batch_1.bin of .* claims \d+ bytes"):
        data.load("cifar10", path=path)


# ---- the real data ----


@pytest.mark.skipif(not os.environ.get("CIFAR_DIR"), reason="CIFAR_DIR is not set")
@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_real_cifar(name):
    dataset = data.load(name, path=os.environ["CIFAR_DIR"])
    classes = tiny_cifar.CLASSES[name]
    for split, n in ((dataset.train, 50_000), (dataset.test, 10_000)):
        assert split.images.shape == (n, 32, 32, 3)
        assert (np.bincount(split.labels) == n // classes).all()
    measured = dataset.train.images.mean((0, 1, 2)) / 255
    np.testing.assert_allclose(measured, dataset.mean, atol=1e-4)
