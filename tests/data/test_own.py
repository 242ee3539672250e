import zipfile

import numpy as np
import pytest
from PIL import Image

from invclr_jax import data
from invclr_jax.data.dataset import channel_statistics
from invclr_jax.show_data import summary

RNG = np.random.default_rng(0)


def pictures(n, height=10, width=12):
    return RNG.integers(0, 256, (n, height, width, 3), dtype=np.uint8)


def save(tmp_path, **arrays):
    np.savez(tmp_path / "own.npz", **arrays)
    return tmp_path / "own.npz"


# ---- arrays ----


def test_arrays_with_everything(tmp_path):
    train, test = pictures(6), pictures(3)
    path = save(
        tmp_path,
        train_images=train,
        train_labels=np.array([0, 1, 2, 0, 1, 2], np.int64),
        test_images=test,
        test_labels=np.array([4, 0, 0], np.uint8),
    )
    dataset = data.load("arrays", path=path)
    np.testing.assert_array_equal(dataset.train.images, train)
    np.testing.assert_array_equal(dataset.test.images, test)
    assert dataset.test.labels.tolist() == [4, 0, 0]
    assert dataset.num_classes == 5
    np.testing.assert_allclose(dataset.mean, train.mean((0, 1, 2)) / 255, rtol=1e-12)
    np.testing.assert_allclose(dataset.std, train.std((0, 1, 2)) / 255, rtol=1e-12)


def test_arrays_with_training_images_only(tmp_path):
    dataset = data.load("arrays", path=save(tmp_path, train_images=pictures(4)))
    assert dataset.test is None
    assert dataset.train.labels is None
    assert dataset.num_classes is None
    assert set(dataset.train.rows) == {"image"}


def test_floats_are_rounded_to_the_levels_of_uint8(tmp_path):
    images = pictures(4)
    near = np.clip((images - 0.4) / 255, 0, 1).astype(np.float32)
    dataset = data.load("arrays", path=save(tmp_path, train_images=near))
    np.testing.assert_array_equal(dataset.train.images, images)


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_arrays_of_any_number_of_channels(tmp_path, channels):
    images = RNG.integers(0, 256, (4, 6, 7, channels), dtype=np.uint8)
    dataset = data.load("arrays", path=save(tmp_path, train_images=images))
    np.testing.assert_array_equal(dataset.train.images, images)
    np.testing.assert_allclose(dataset.mean, images.mean((0, 1, 2)) / 255, rtol=1e-12)
    np.testing.assert_allclose(dataset.std, images.std((0, 1, 2)) / 255, rtol=1e-12)


def test_constant_channels_can_be_divided_by():
    mean, std = channel_statistics(np.full((2, 3, 3, 3), 51, np.uint8))
    np.testing.assert_allclose(mean, 0.2, rtol=1e-12)
    assert min(std) > 0


FOUR = np.zeros((4, 8, 8, 3), np.uint8)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"images": FOUR}, "no array train_images, only images"),
        ({"train_images": FOUR[:0]}, r"shape \(0, 8, 8, 3\)"),
        ({"train_images": FOUR[..., 0]}, r"shape \(4, 8, 8\)"),
        ({"train_images": FOUR.transpose(0, 3, 1, 2)}, r"transpose\(0, 2, 3, 1\)"),
        ({"train_images": FOUR.astype(np.int64)}, "dtype int64: use uint8, or floats"),
        ({"train_images": FOUR + 1.5}, r"from 1\.5 to 1\.5, outside \[0, 1\]"),
        ({"train_images": FOUR - 0.5}, r"outside \[0, 1\]"),
        ({"train_images": FOUR * np.nan}, r"outside \[0, 1\]"),
        ({"train_images": FOUR, "train_labels": np.arange(3)}, "expected 4 integers"),
        ({"train_images": FOUR, "train_labels": np.arange(4.0)}, "dtype float64"),
        ({"train_images": FOUR, "train_labels": np.arange(4)[:, None]}, r"shape \(4, 1\)"),
        ({"train_images": FOUR, "train_labels": np.arange(4) - 1}, "number the classes from 0"),
        ({"train_images": FOUR, "train_labels": np.arange(4) + 2**31}, "number the classes"),
        ({"train_images": FOUR, "test_labels": np.arange(4)}, "no test_images"),
        ({"train_images": FOUR, "test_images": FOUR[:0]}, "test_images of .* shape"),
    ],
)
def test_bad_arrays_are_refused(tmp_path, arrays, words):
    with pytest.raises(ValueError, match=words):
        data.load("arrays", path=save(tmp_path, **arrays))


class Runs:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("array", ["train_images", "train_labels", "other"])
def test_object_arrays_are_never_unpickled(tmp_path, array):
    mark = tmp_path / "mark"
    arrays = {"train_images": FOUR, array: np.array([Runs(str(mark))] * 4, object)}
    path = save(tmp_path, **arrays)
    with pytest.raises(ValueError, match="never unpickled"):
        data.load("arrays", path=path)
    assert not mark.exists()


def test_files_that_are_no_npz(tmp_path):
    whole = save(tmp_path, train_images=pictures(4)).read_bytes()
    cut, text, single = tmp_path / "cut.npz", tmp_path / "text.npz", tmp_path / "single.npy"
    cut.write_bytes(whole[: len(whole) // 2])
    text.write_text("hello")
    np.save(single, FOUR)
    with zipfile.ZipFile(tmp_path / "hello.npz", "w") as archive:
        archive.writestr("train_images.npy", b"not an array")
    for path in (cut, text, single, tmp_path / "hello.npz"):
        with pytest.raises(ValueError, match=f"{path.name}.*cannot be read"):
            data.load("arrays", path=path)
    with pytest.raises(ValueError, match=r"is a folder, expected an \.npz file"):
        data.load("arrays", path=tmp_path)


# ---- folders ----


def draw(path, colour, size=(8, 8), mode="RGB", **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path, **options)


def test_class_folders(tmp_path):
    draw(tmp_path / "zebra" / "a.png", (255, 0, 0))
    draw(tmp_path / "ant" / "b.PNG", (0, 255, 0), size=(20, 7))
    draw(tmp_path / "ant" / "c.jpg", (0, 0, 255), size=(5, 40), quality=100)
    draw(tmp_path / "ant" / "d.jpeg", 128, mode="L")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "ant" / ".DS_Store").write_bytes(b"x")
    dataset = data.load("folder", path=tmp_path, size=16)
    assert dataset.train.images.shape == (4, 16, 16, 3)
    assert dataset.train.labels.tolist() == [0, 0, 0, 1]
    assert dataset.label_names == ("ant", "zebra")
    assert dataset.num_classes == 2
    assert dataset.test is None
    colours = dataset.train.images.mean((1, 2))
    expected = [(0, 255, 0), (0, 0, 255), (128, 128, 128), (255, 0, 0)]
    np.testing.assert_allclose(colours, expected, atol=3)


def test_train_and_test_folders(tmp_path):
    for place in ("train/a/1.png", "train/b/1.png", "train/b/2.png", "test/b/3.png"):
        draw(tmp_path / place, (1, 2, 3))
    dataset = data.load("folder", path=tmp_path)
    assert dataset.train.images.shape == (3, 32, 32, 3)
    assert dataset.test.labels.tolist() == [1]


def test_a_class_may_be_called_train(tmp_path):
    for name in ("bus", "train"):
        draw(tmp_path / name / "1.png", (1, 2, 3))
    assert data.load("folder", path=tmp_path).label_names == ("bus", "train")


def test_orientation_and_transparency(tmp_path):
    left = Image.new("RGB", (8, 4), (255, 255, 255))
    left.paste((0, 0, 0), (0, 0, 4, 4))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn clockwise by a quarter to see it upright
    (tmp_path / "a").mkdir()
    left.save(tmp_path / "a" / "turned.jpg", exif=exif, quality=100)
    draw(tmp_path / "a" / "clear.png", (255, 0, 0, 10), mode="RGBA")
    clear, turned = data.load("folder", path=tmp_path, size=8).train.images
    assert turned[:3].mean() < 20
    assert turned[-3:].mean() > 235
    np.testing.assert_array_equal(clear[0, 0], (255, 0, 0))


def test_other_files_are_skipped_and_counted(tmp_path, caplog):
    draw(tmp_path / "a" / "1.png", (1, 2, 3))
    draw(tmp_path / "a" / "more" / "2.png", (4, 5, 6))
    for stray in ("a/notes.txt", "a/more/Thumbs.db", "readme.md", "a/.hidden/3.txt"):
        (tmp_path / stray).parent.mkdir(exist_ok=True)
        (tmp_path / stray).write_text("hello")
    dataset = data.load("folder", path=tmp_path)
    assert dataset.train.images[:, 0, 0].tolist() == [[1, 2, 3], [4, 5, 6]]
    (line,) = caplog.messages
    assert "skipped 3 files" in line
    assert "readme.md" in line


def test_a_picture_without_a_class_is_refused(tmp_path):
    draw(tmp_path / "a" / "1.png", (1, 2, 3))
    draw(tmp_path / "2.png", (1, 2, 3))
    with pytest.raises(ValueError, match=r"2\.png is beside the class folders"):
        data.load("folder", path=tmp_path)


def test_pictures_of_any_number_of_channels(tmp_path):
    draw(tmp_path / "a" / "1.png", (255, 0, 0, 100), mode="RGBA")
    grey = data.load("folder", path=tmp_path, channels=1, size=4)
    assert grey.train.images.shape == (1, 4, 4, 1)
    assert grey.train.images[0, 0, 0, 0] == 76  # .299 · 255
    assert len(grey.mean) == len(grey.std) == 1
    clear = data.load("folder", path=tmp_path, channels=4)
    assert clear.train.images[0, 0, 0].tolist() == [255, 0, 0, 100]
    with pytest.raises(ValueError, match="5 channels cannot be read"):
        data.load("folder", path=tmp_path, channels=5)


def test_bad_pictures_are_named(tmp_path):
    draw(tmp_path / "a" / "1.png", (1, 2, 3))
    (tmp_path / "a" / "2.png").write_text("hello")
    with pytest.raises(ValueError, match=r"2\.png cannot be read"):
        data.load("folder", path=tmp_path)
    whole = (tmp_path / "a" / "1.png").read_bytes()
    (tmp_path / "a" / "2.png").write_bytes(whole[:-30])
    with pytest.raises(ValueError, match=r"2\.png cannot be read"):
        data.load("folder", path=tmp_path)
    draw(tmp_path / "a" / "2.png", 40_000, mode="I;16")
    with pytest.raises(ValueError, match=r"2\.png .*more than 8 bits"):
        data.load("folder", path=tmp_path)


def test_folders_without_pictures_are_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no pictures"):
        data.load("folder", path=tmp_path)
    (tmp_path / "a").mkdir()
    with pytest.raises(ValueError, match="holds no pictures"):
        data.load("folder", path=tmp_path)


def test_classes_only_the_test_folder_has_are_refused(tmp_path):
    for place in ("train/a/1.png", "test/b/3.png"):
        draw(tmp_path / place, (1, 2, 3))
    with pytest.raises(ValueError, match="class 'b', which the training folder lacks"):
        data.load("folder", path=tmp_path)


def test_a_file_where_a_folder_is_due(tmp_path):
    path = save(tmp_path, train_images=FOUR)
    with pytest.raises(NotADirectoryError, match=r"own\.npz is a file, expected a folder"):
        data.load("folder", path=path)
    with pytest.raises(ValueError, match="picture size 0"):
        data.load("folder", path=tmp_path, size=0)


# ---- loading in general ----


@pytest.mark.parametrize("name", ["arrays", "folder"])
@pytest.mark.parametrize("path", [None, "", "/nowhere/at/all"])
def test_missing_own_data_names_path_and_key(name, path):
    with pytest.raises(FileNotFoundError, match=f"the path {path} .* does not exist.*{name}"):
        data.load(name, path=path)


def test_unknown_names_and_options_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"'cifar': use one of cifar10, cifar100, arrays"):
        data.load("cifar")
    with pytest.raises(ValueError, match=r"no option 'sise': its options are size, channels"):
        data.load("folder", path=tmp_path, sise=3)
    assert data.options_of("cifar10") == ("verify", "download")
    assert data.options_of("spirograph") == ("seed", "num_train", "num_test")


def test_a_loader_of_ones_own():
    def mine(*, path=None, number=2):
        images = pictures(number)
        return data.Dataset(f"mine at {path}", data.Split(images), None)

    assert len(data.load(mine).train) == 2
    dataset = data.load(mine, path="here", number=3)
    assert (dataset.name, len(dataset.train)) == ("mine at here", 3)
    assert data.options_of(mine) == ("number",)
    with pytest.raises(ValueError, match="returned a list: it must return"):
        data.load(lambda: [1, 2])


def test_splits_check_themselves(no_shape_checks):
    with pytest.raises(ValueError, match="4 images but 3 labels"):
        data.Split(FOUR, np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="empty"):
        data.Split(FOUR[:0])
    wrong = data.Split(FOUR, np.array([0, 2, 1, 1], np.int32))
    with pytest.raises(ValueError, match="label 2 of image 1 in the test set is out of range"):
        data.Dataset("x", data.Split(FOUR), wrong, num_classes=2)


def test_summary(tmp_path):
    path = save(tmp_path, train_images=FOUR + 51, train_labels=np.array([0, 1, 1, 1]))
    text = summary(data.load("arrays", path=path))
    for words in ("2 classes", "uint8 (4, 8, 8, 3)", "[1, 3]", "test   none", "(0.2000, 0.2000"):
        assert words in text
    assert "100000" in summary(data.load("spirograph"))
