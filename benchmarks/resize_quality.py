"""Our crops against Pillow's, which torchvision uses: how far apart, how exact, how fast.

The pictures are sums of waves, so the value that perfect resampling would give is known. All
differences are in levels of 255. `python -m benchmarks.run --only=resize_quality`.
"""

import jax
import numpy as np
from PIL import Image

from benchmarks.measure import Row, interleaved, medians
from invclr_jax.transforms import geometry

SIZE, PICTURES, WAVES = 32, 256, 12
BILINEAR, LANCZOS = Image.Resampling.BILINEAR, Image.Resampling.LANCZOS


class Waves:
    """Smooth random pictures that can be evaluated anywhere; wavelengths from 6 to 60 pixels."""

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        angle = rng.uniform(0, 2 * np.pi, (PICTURES, WAVES))
        wavelength = np.exp(rng.uniform(np.log(6), np.log(60), (PICTURES, WAVES)))
        self.frequency = 2 * np.pi / wavelength * np.stack([np.cos(angle), np.sin(angle)])
        self.phase = rng.uniform(0, 2 * np.pi, (PICTURES, WAVES, 3))

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Values in [0, 1] at `rows` and `columns` `[n, k]`: `[n, k, k, 3]`."""
        vertical = rows[..., None] * self.frequency[0][:, None]
        horizontal = columns[..., None] * self.frequency[1][:, None]
        angle = vertical[:, :, None, :, None] + horizontal[:, None, :, :, None]
        waves = np.sin(angle + self.phase[:, None, None])
        return np.clip(0.5 + waves.mean(-2), 0, 1)


def pictures_and_boxes(side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """8-bit pictures of a given side, random crops of them, and the crops' exact values."""
    waves = Waves(side)
    centres = np.tile(np.arange(side) + 0.5, (PICTURES, 1))
    pixels = np.round(255 * waves.at(centres, centres)).astype(np.uint8)
    draws = geometry.sample_crops(jax.random.key(side), PICTURES)
    boxes = np.asarray(geometry.crop_boxes(draws, side, side))
    samples = (np.arange(SIZE) + 0.5)[None] / SIZE
    rows, columns = (boxes[:, [k]] + samples * boxes[:, [k + 2]] for k in range(2))
    return pixels, boxes, 255 * waves.at(rows, columns)


@jax.jit
def _crop(pixels, boxes):
    return 255 * geometry.crop_and_resize(pixels / 255, boxes, None, (SIZE, SIZE))


def _pillow(pixels: np.ndarray, boxes: np.ndarray, kernel: Image.Resampling) -> np.ndarray:
    crops = []
    for picture, (top, left, height, width) in zip(pixels, boxes, strict=True):
        cut = Image.fromarray(picture).crop((left, top, left + width, top + height))
        crops.append(np.asarray(cut.resize((SIZE, SIZE), kernel)))
    return np.stack(crops)


def _quality(side: int) -> list[Row]:
    pixels, boxes, exact = pictures_and_boxes(side)
    work = f"crops of {side}×{side} to {SIZE}×{SIZE}"
    ours = np.asarray(_crop(pixels, boxes), np.float64)
    theirs = {
        kernel: _pillow(pixels, boxes, kernel).astype(np.float64) for kernel in (BILINEAR, LANCZOS)
    }
    rows = []
    for kernel, values in theirs.items():
        difference = np.abs(ours - values)
        rows.append(
            Row(
                f"{work}: mean difference from Pillow's {kernel.name.lower()}",
                difference.mean(),
                unit="levels",
                details={"largest": difference.max()},
            )
        )
        rms = [np.sqrt(np.mean((result - exact) ** 2)) for result in (ours, values)]
        name = f"Pillow {kernel.name.lower()}"
        rows.append(Row(f"{work}: RMS error", rms[0], rms[1], name, unit="levels"))
    return rows


def rows(repeats: int) -> list[Row]:
    """Differences and errors of enlarging and of shrinking crops, and the time of the former."""
    pixels, boxes, _ = pictures_and_boxes(SIZE)
    contenders = {
        "ours": lambda: _crop(pixels, boxes),
        "Pillow": lambda: _pillow(pixels, boxes, BILINEAR),
    }
    seconds = medians(interleaved(contenders, repeats=repeats))
    speed = Row(
        f"crop {PICTURES} pictures of {SIZE}×{SIZE}",
        seconds["ours"],
        seconds["Pillow"],
        "Pillow bilinear",
    )
    return [*_quality(SIZE), *_quality(3 * SIZE), speed]
