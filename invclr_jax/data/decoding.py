"""Encoded pictures become 8-bit arrays."""

import io
import os
from typing import BinaryIO

import numpy as np
from jaxtyping import UInt8
from PIL import ExifTags, Image, ImageOps

SUFFIXES = (".png", ".jpg", ".jpeg")

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
"""Number of channels -> Pillow's name for such pictures."""

GAP = 2
"""JPEG files are decoded at a half, a quarter or an eighth of their size as long as GAP times the
wanted size is left, so that the resampling filter still has enough to work with."""

Shape = tuple[int, int, int]
"""Height, width and channels."""

Encoded = str | os.PathLike[str] | bytes
"""A file, or its contents."""


class UnreadableError(ValueError):
    """What should be a picture is not one."""


def check_shape(size: int, channels: int) -> None:
    """Refuses sizes and numbers of channels that no picture can have."""
    if size < 1:
        raise ValueError(f"picture size {size} is not positive: use 1 or more")
    if channels not in MODES:
        raise ValueError(
            f"pictures with {channels} channels cannot be read: use one of {list(MODES)}"
        )


def squeezed(picture: Encoded, shape: Shape) -> UInt8[np.ndarray, "h w c"]:
    """The whole picture in the given shape; its aspect ratio may change."""
    image = _upright(picture, shape[2])
    resized = image.resize((shape[1], shape[0]), Image.Resampling.BICUBIC)
    return np.asarray(resized).reshape(shape)


def cropped(picture: Encoded, shape: Shape) -> UInt8[np.ndarray, "h w c"]:
    """The largest centre crop of a picture, resized to the given shape.

    Args:
      picture: a PNG or JPEG file, or its contents.
      shape: of the result.
    """
    height, width, channels = shape
    image = _upright(picture, channels, least=(width * GAP, height * GAP))
    scale = min(image.width / width, image.height / height)
    across, down = (image.width - scale * width) / 2, (image.height - scale * height) / 2
    box = (across, down, image.width - across, image.height - down)
    # As torchvision does by default; Pillow's filter widens with the scale, so nothing aliases.
    resized = image.resize((width, height), Image.Resampling.BILINEAR, box=box)
    return np.asarray(resized).reshape(shape)


def _upright(picture: Encoded, channels: int, least: tuple[int, int] | None = None) -> Image.Image:
    """The decoded picture as the camera was held; a JPEG may be smaller, but not below `least`.

    Args:
      picture: a file, or its contents.
      channels: of the result.
      least: width and height; None for the whole picture.
    """
    opened: BinaryIO | str | os.PathLike[str]
    opened = io.BytesIO(picture) if isinstance(picture, bytes) else picture
    try:
        with Image.open(opened, formats=("PNG", "JPEG")) as image:
            if image.mode in ("F", "I") or image.mode.startswith("I;"):
                raise ValueError(f"mode {image.mode}: more than 8 bits per channel")
            if least is not None:
                image.draft(None, (max(least), max(least)))  # it may still be rotated
            turned = image.getexif().get(ExifTags.Base.Orientation, 1) != 1
            image.load()  # before its file is closed
            # Each of these would copy the picture.
            upright = ImageOps.exif_transpose(image) if turned else image
            mode = MODES[channels]
            return upright if upright.mode == mode else upright.convert(mode)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise UnreadableError(f"cannot be read as an 8-bit PNG or JPEG ({error})") from None
