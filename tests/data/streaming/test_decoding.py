"""Decoded pictures: the middle, upright, in the asked shape, near what Pillow alone gives."""

import numpy as np
import pytest
from PIL import Image

from invclr_jax.data.decoding import UnreadableError, cropped, squeezed
from tests.data.streaming.made import SIZES, encoded, picture


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_the_middle_is_cropped_and_resized(size, kind):
    image = picture(3, 1, size)
    side = min(size)
    left, top = (size[0] - side) / 2, (size[1] - side) / 2
    box = (left, top, left + side, top + side)
    expected = np.asarray(image.resize((12, 12), Image.Resampling.BILINEAR, box=box), int)
    found = cropped(encoded(image, kind), (12, 12, 3))
    assert found.dtype == np.uint8
    limit = 0 if kind == "PNG" else 8  # JPEG's own error, and decoding at a smaller scale
    assert np.abs(found - expected).max() <= limit


def test_the_shape_may_be_oblong():
    image = picture(0, 0, (40, 40))
    found = cropped(encoded(image, "PNG"), (10, 20, 3))
    expected = image.resize((20, 10), Image.Resampling.BILINEAR, box=(0, 10, 40, 30))
    np.testing.assert_array_equal(found, expected)


def test_large_photographs_are_decoded_at_a_smaller_scale(monkeypatch):
    asked = []
    original = Image.Image.resize

    def watched(self, *arguments, **options):
        asked.append(self.size)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Image.Image, "resize", watched)
    cropped(encoded(picture(0, 0, (800, 640))), (20, 20, 3))
    cropped(encoded(picture(0, 0, (800, 640))), (200, 200, 3))
    squeezed(encoded(picture(0, 0, (800, 640))), (20, 20, 3))
    assert asked == [(100, 80), (800, 640), (800, 640)]


@pytest.mark.parametrize("size", [(60, 30), (300, 150)])
def test_pictures_are_turned_as_their_camera_was_held(size):
    image, exif = picture(0, 0, size), Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise
    found = cropped(encoded(image, exif=exif), (15, 15, 3)).astype(int)
    expected = cropped(encoded(image.transpose(Image.Transpose.ROTATE_270)), (15, 15, 3))
    assert np.abs(found - expected).max() <= 8


def test_channels():
    grey = cropped(encoded(picture(0, 2)), (8, 8, 1))
    assert grey.shape == (8, 8, 1)


@pytest.mark.parametrize("contents", [b"", b"nonsense", encoded(picture(0, 0))[:300]])
def test_what_is_no_picture_is_unreadable(contents):
    with pytest.raises(UnreadableError, match="cannot be read as an 8-bit PNG or JPEG"):
        cropped(contents, (8, 8, 3))


def test_more_than_8_bits_are_refused():
    deep = encoded(Image.fromarray(np.full((9, 9), 40_000, np.uint16)), "PNG")
    with pytest.raises(UnreadableError, match="more than 8 bits"):
        cropped(deep, (8, 8, 3))
