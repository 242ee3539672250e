"""Folders, parquet and tfds give the same pictures and labels; what is wrong gets a sentence."""

import logging

import numpy as np
import pytest

from invclr_jax import data
from invclr_jax.data.decoding import cropped
from invclr_jax.data.streaming.load import load_stream
from tests.data.streaming import made

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    root = tmp_path_factory.mktemp("streams")
    return {
        "folder": made.make_folder(root / "folder"),
        "parquet": made.make_parquet(root / "parquet"),
        "tfds": made.make_prepared(root / "tfds"),
    }


def contents(count, first, by_class):
    rows = list(made.examples(count, first))
    rows = sorted(rows, key=lambda row: row[1]) if by_class else rows
    labels = np.array([label for _, label, _ in rows])
    return np.stack([cropped(c, (16, 16, 3)) for _, _, c in rows]), labels


@pytest.mark.parametrize("form", ["folder", "parquet", "tfds"])
def test_every_form_is_recognised_and_read(places, form):
    dataset = data.load("stream", path=places[form], size=16)
    assert dataset.num_classes == 3
    assert dataset.label_names == made.CLASSES
    for split, count, first in ((dataset.train, 20, 0), (dataset.test, 8, 100)):
        images, labels = contents(count, first, form == "folder")
        assert split.images.shape == images.shape
        np.testing.assert_array_equal(split.images[:], images)
        np.testing.assert_array_equal(split.labels, labels)
    images, _ = contents(20, 0, False)
    np.testing.assert_allclose(dataset.mean, (images / 255).mean((0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(dataset.std, (images / 255).std((0, 1, 2)), rtol=1e-6)


@pytest.mark.parametrize("form", ["parquet", "tfds"])
def test_labels_may_stay_unread(places, form):
    dataset = load_stream(places[form], size=16, labels=False, statistics=0)
    assert dataset.train.labels is None
    assert dataset.num_classes is None
    assert dataset.mean is None


def test_rows_in_any_form_of_index(places):
    pictures = data.load("stream", path=places["folder"], size=8).train.images
    whole = pictures[:]
    np.testing.assert_array_equal(pictures[3], whole[3])
    np.testing.assert_array_equal(pictures[-2:], whole[-2:])
    index = np.array([[5, 1], [0, 5]])
    np.testing.assert_array_equal(pictures[index], whole[index])
    part = pictures.take(np.array([7, 2, 9]))
    np.testing.assert_array_equal(part.take(np.array([2, 0]))[:], whole[[9, 7]])
    assert part.shape == (3, 8, 8, 3)


def test_a_sample_reads_nothing_and_keeps_the_classes(places, monkeypatch):
    split = data.load("stream", path=places["folder"], size=8, statistics=0).train
    monkeypatch.setattr(type(split.images), "read", None)
    part = data.sample(split, 6)
    assert np.bincount(part.labels).tolist() == [2, 2, 2]
    np.testing.assert_array_equal(split.labels[part.images.rows], part.labels)


def test_all_of_a_stream_in_memory_is_refused(places):
    with pytest.raises(ValueError, match="20 pictures are streamed, but all of them are needed"):
        _ = data.load("stream", path=places["folder"], size=8, statistics=0).train.array


# What is wrong ----------------------------------------------------------------------------------


def damage(root):
    (root / "train" / "owl" / "002.png").write_bytes(b"nonsense")
    (root / "train" / "owl" / "005.png").write_bytes(b"")
    return root


def test_a_damaged_picture_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"owl/002.png cannot be read .* on_error=skip"):
        load_stream(damage(made.make_folder(tmp_path)), size=8)


def test_or_replaced_by_the_next_of_its_class_and_counted(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        dataset = load_stream(damage(made.make_folder(tmp_path)), size=8, on_error="skip")
    images = dataset.train.images
    names = [images.source.name(row).split("/")[-1] for row in range(20)]
    bad, next_one, good = (names.index(f"{n:03d}.png") for n in (2, 5, 8))
    np.testing.assert_array_equal(images[bad], images[good])
    np.testing.assert_array_equal(images[next_one], images[good])
    assert len(images.amiss.names) == 2
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2, "each is named once"
    assert all("008.png is read in its place" in line for line in lines)


def test_the_last_of_a_class_is_followed_by_the_first(tmp_path):
    made.make_folder(tmp_path)
    (tmp_path / "train" / "owl" / "017.png").write_bytes(b"nonsense")
    images = load_stream(tmp_path, size=8, on_error="skip").train.images
    row = next(r for r in range(20) if images.source.name(r).endswith("017.png"))
    first = next(r for r in range(20) if images.source.name(r).endswith("002.png"))
    np.testing.assert_array_equal(images[row], images[first])


def test_nothing_but_damage_ends(tmp_path):
    made.make_folder(tmp_path)
    for file in (tmp_path / "train" / "owl").iterdir():
        file.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="nor can the 5 pictures that were tried in its place"):
        load_stream(tmp_path, size=8, on_error="skip")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "zip"}, "no format 'zip' .*use one of folder, parquet, tfds"),
        ({"size": 0}, "size 0 is not positive"),
        ({"channels": 5}, "5 channels cannot be read"),
        ({"on_error": "ignore"}, "use one of refuse, skip"),
        ({"workers": -1}, "workers is -1"),
        ({"test": "holdout"}, "no split 'holdout', only train, val"),
    ],
)
def test_nonsense_options_get_a_sentence(places, options, words):
    with pytest.raises(ValueError, match=words):
        load_stream(places["folder"], **options)


def test_other_places_get_a_sentence(places, tmp_path):
    with pytest.raises(ValueError, match="cannot be streamed"):
        load_stream(tmp_path)
    (tmp_path / "train" / "cat").mkdir(parents=True)
    with pytest.raises(ValueError, match="holds no pictures"):
        load_stream(tmp_path)
    with pytest.raises(ValueError, match=r"holds no \.parquet file"):
        load_stream(tmp_path, format="parquet")
    with pytest.raises(FileNotFoundError, match="needs a folder of pictures there"):
        data.load("stream", path=tmp_path / "nowhere")
    for form, word in (("parquet", "column"), ("tfds", "feature")):
        with pytest.raises(ValueError, match=f"has no {word} 'species', only "):
            load_stream(places[form], label_column="species")
        with pytest.raises(ValueError, match="has no split 'fit', only"):
            load_stream(places[form], train="fit", test="test")


def test_labels_that_are_no_classes_get_a_sentence(places):
    with pytest.raises(ValueError, match="labels must be integers from 0"):
        load_stream(places["parquet"], label_column="image")
