"""The gallery: what its panels show, what it reads, and the command itself."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from invclr_jax import gallery
from invclr_jax.transforms.corruptions import NAMES
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.spirograph import SpirographTransform


@pytest.fixture(scope="module")
def photographs():
    return np.random.default_rng(0).integers(0, 256, (2, 10, 12, 3), np.uint8)


def test_nuisances_vary_while_factors_stay():
    x, pictures = gallery.varied_nuisances(gallery.SEEDS[0])
    transform = SpirographTransform()
    assert (transform.x.low <= x).all()
    assert (x <= transform.x.high).all()
    corners = pictures[:, 0, 0]  # the background
    assert np.abs(corners[:, None] - corners[None]).max(-1)[np.triu_indices(4, 1)].min() > 0.05


def test_pens_and_backgrounds_share_a_curve():
    pens, backgrounds = gallery.swept_pens(), gallery.shifted_backgrounds()
    np.testing.assert_array_equal(pens[gallery.PENS.index(gallery.ALPHA["h"])], backgrounds[0])
    np.testing.assert_allclose(pens[:, 0, 0], np.tile(pens[0, 0, 0], (4, 1)), atol=1e-6)
    shifts = backgrounds[:, 0, 0] - backgrounds[:1, 0, 0]
    np.testing.assert_allclose(shifts, np.outer(gallery.SHIFTS, np.ones(3)), atol=1e-5)
    assert backgrounds.max() <= 1


def test_strength_scales_one_distortion(photographs):
    plain = ImageTransform(gallery.PHOTO_SIZE, mean=(0, 0, 0), std=(1, 1, 1))
    plain = np.asarray(plain.untransformed(photographs[[0, 1, 0, 1]]))
    distances = [
        np.abs(gallery.jittered(photographs, s) - plain).mean((1, 2, 3)) for s in (0.1, 0.4)
    ]
    assert (distances[1] > 2 * distances[0]).all()
    np.testing.assert_allclose(gallery.jittered(photographs, 0.0), plain, atol=3e-3)


def test_every_panel_is_drawn(photographs):
    panels = [axis for axis in gallery.draw_gallery(photographs).axes if axis.images]
    assert len(panels) == 8 + 8 + 16
    titles = [axis.get_title() for axis in panels]
    assert titles[8:16] == ["h = 0.5", "h = 1", "h = 1.5", "h = 2", "0", "0.15", "0.3", "0.45"]


def test_every_corruption_is_drawn_at_every_severity(photographs, monkeypatch):
    calls = []

    def corrupt(images, name, severity, key):
        assert images.shape == (1, 32, 32, 3)
        calls.append((name, severity))
        return np.full(images.shape, len(calls) / 100, np.float32)

    monkeypatch.setattr(gallery, "corrupt", corrupt)
    panels = np.reshape(gallery.draw_corruptions(photographs).axes, (5, 15))
    assert panels[0, 9].get_title() == "fog"
    for column, name in enumerate(NAMES):
        for row, severity in enumerate((1, 2, 3, 4, 5)):
            shown = panels[row, column].images[0].get_array()
            assert shown[0, 0, 0] == np.float32((calls.index((name, severity)) + 1) / 100)


def test_images_come_from_a_file_a_folder_or_matplotlib(tmp_path, photographs):
    np.savez(tmp_path / "images.npz", labels=np.zeros(2, int), train_images=photographs)
    np.testing.assert_array_equal(gallery.read_images(str(tmp_path / "images.npz")), photographs)
    (tmp_path / "folder" / "class").mkdir(parents=True)
    Image.fromarray(photographs[0]).save(tmp_path / "folder" / "class" / "a.png")
    size = gallery.PHOTO_SIZE
    assert gallery.read_images(str(tmp_path / "folder")).shape == (1, size, size, 3)
    _, height, width, _ = gallery.read_images(None).shape
    assert height == width


def test_missing_images_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist: give an npz file or a folder"):
        gallery.read_images(str(tmp_path / "nothing.npz"))
    np.savez(tmp_path / "labels.npz", labels=np.zeros(2, int))
    with pytest.raises(ValueError, match=r"no images \[n, h, w, 3\], only \['labels'\]"):
        gallery.read_images(str(tmp_path / "labels.npz"))


def test_command_writes_the_picture(tmp_path):
    out = tmp_path / "new" / "gallery.png"
    corruptions = tmp_path / "corruptions.png"
    command = [sys.executable, "-m", "invclr_jax.gallery", f"--out={out}"]
    command.append(f"--corruptions={corruptions}")
    subprocess.run([*command, "--compilation_cache="], check=True, capture_output=True)
    with Image.open(out) as picture:
        assert picture.width > 600
    with Image.open(corruptions) as picture:
        assert picture.width > 1000
