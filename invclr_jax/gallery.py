"""Draws what transformations and corruptions do, as pictures to look at.

    python -m invclr_jax.gallery --out=gallery.png [--corruptions=corruptions.png] [--images=x.npz]

The images that are jittered and corrupted come from an npz file of images [n, h, w, 3], or from a
folder of class folders of PNG or JPEG files; without either, from a photograph that Matplotlib
brings along.
"""

import pathlib
from collections.abc import Sequence

import jax
import numpy as np
from absl import flags
from jaxtyping import Float, UInt8
from matplotlib import cbook
from matplotlib.figure import Figure, SubFigure
from PIL import Image

from invclr_jax import cli
from invclr_jax.data.arrays import read_npz
from invclr_jax.data.folder import load_folder
from invclr_jax.transforms.corruptions import NAMES, SEVERITIES, corrupt
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.spirograph import SpirographTransform

SEEDS = (2, 10)
PENS = (0.5, 1.0, 1.5, 2.0)
SHIFTS = (0.0, 0.15, 0.30, 0.45)
STRENGTHS = (0.1, 0.2, 0.3, 0.4)
PHOTO_SIZE = 160
CORRUPTED_SIZE = 32  # that of CIFAR-10-C, whose strengths are lengths in pixels

# The curve of the paper's appendix in other colours, so that every shift leaves them in [0, 1].
X = (4.0, 0.4, 0.5, 0.95)
ALPHA = {"h": 2.0, "f_g": 0.8, "f_b": 0.6, "b_r": 0.05, "b_g": 0.1, "b_b": 0.3}

Images = UInt8[np.ndarray, "n h w 3"] | Float[np.ndarray, "n h w 3"]
Pictures = Float[np.ndarray, "4 size size 3"]


def draw_gallery(images: Images) -> Figure:
    """Spirograph nuisances, its pen and background, and the jitter of photographs.

    Args:
      images: photographs, `[n, h, w, 3]`; the first four are used.

    Returns:
      A figure to save.
    """
    figure = Figure(figsize=(10, 6.3), layout="constrained")
    heights = (1, 1.1, 1.9)
    curves, sweeps, photographs = figure.subfigures(3, 1, squeeze=False, height_ratios=heights)[
        :, 0
    ]
    for part, seed in zip(_beside(curves, 2), SEEDS, strict=True):
        x, pictures = varied_nuisances(seed)
        _show(part, "m {:.1f}, b {:.2f}, σ {:.2f}, f_r {:.2f}: four nuisances".format(*x), pictures)
    pens, backgrounds = _beside(sweeps, 2)
    _show(pens, "Pen", swept_pens(), [f"h = {h:g}" for h in PENS])
    _show(backgrounds, "Background shift", shifted_backgrounds(), [f"{s:g}" for s in SHIFTS])
    for part, strength in zip(_beside(photographs, 4), STRENGTHS, strict=True):
        _show(part, f"Jitter of strength {strength:g}", jittered(images, strength), rows=2)
    return figure


def draw_corruptions(images: Images) -> Figure:
    """All corruptions, one a column, at their five severities.

    Args:
      images: photographs, `[n, h, w, 3]`; the first is used.

    Returns:
      A figure to save.
    """
    plain = ImageTransform(CORRUPTED_SIZE, mean=(0, 0, 0), std=(1, 1, 1)).untransformed(images[:1])
    figure = Figure(figsize=(16, 6), layout="constrained")
    axes = figure.subplots(len(SEVERITIES), len(NAMES))
    for column, name in enumerate(NAMES):
        axes[0, column].set_title(name.replace("_", "\n"), fontsize=9)
        for row, severity in enumerate(SEVERITIES):
            corrupted = corrupt(plain, name, severity, jax.random.key(0))[0]
            axes[row, column].imshow(np.clip(corrupted, 0, 1))
            axes[row, column].set_axis_off()
    return figure


def varied_nuisances(seed: int) -> tuple[Float[np.ndarray, "4"], Pictures]:
    """Factors of interest, and four pictures of them that differ in their nuisances."""
    transform = SpirographTransform()
    x_key, alpha_key = jax.random.split(jax.random.key(seed))
    x = np.asarray(transform.x.sample(x_key, 1))
    alpha, _ = transform.sample(alpha_key, 4)
    return x[0], np.asarray(transform.apply(np.repeat(x, 4, axis=0), alpha))


def swept_pens() -> Pictures:
    """One curve for each pen."""
    return _curves([ALPHA | {"h": pen} for pen in PENS])


def shifted_backgrounds() -> Pictures:
    """One curve with its background shifted towards white."""
    background = ("b_r", "b_g", "b_b")
    return _curves([ALPHA | {name: ALPHA[name] + s for name in background} for s in SHIFTS])


def jittered(images: Images, strength: float) -> Pictures:
    """Four photographs under colour jitter; fewer than four are repeated."""
    transform = ImageTransform(
        size=PHOTO_SIZE,
        mean=(0, 0, 0),
        std=(1, 1, 1),
        strength=strength,
        crop=False,
        flip=False,
        jitter_probability=1,
        grey_probability=0,
    )
    four = images[np.arange(4) % len(images)]
    # The key is the same for every strength: only the amount of the same distortion differs.
    return np.asarray(transform.apply(four, *transform.sample(jax.random.key(5), 4)))


def _curves(alphas: Sequence[dict[str, float]]) -> Pictures:
    transform = SpirographTransform()
    rows = [[alpha[name] for name in transform.nuisance] for alpha in alphas]
    x = np.array([X] * len(rows), np.float32)
    return np.asarray(transform.apply(x, np.array(rows, np.float32)))


def _beside(part: SubFigure, count: int) -> list[SubFigure]:
    return list(part.subfigures(1, count, squeeze=False, wspace=0.05).ravel())


def _show(
    part: SubFigure, title: str, pictures: Pictures, captions: Sequence[str] = (), rows: int = 1
) -> None:
    part.suptitle(title, fontsize=10)
    axes = part.subplots(rows, 4 // rows).ravel()
    for axis, picture in zip(axes, pictures, strict=True):
        axis.imshow(np.clip(picture, 0, 1))
        axis.set_axis_off()
    for axis, caption in zip(axes, captions, strict=False):
        axis.set_title(caption, fontsize=9)


def read_images(path: str | None) -> Images:
    """Images of an npz file or a folder, or the photograph of Grace Hopper (public domain)."""
    if path is None:
        with Image.open(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)) as photograph:
            square = photograph.convert("RGB").crop((0, 0, photograph.width, photograph.width))
            return np.asarray(square)[None]
    place = pathlib.Path(path)
    if not place.exists():
        raise FileNotFoundError(f"{path} (--images) does not exist: give an npz file or a folder")
    if place.is_dir():
        return load_folder(place, size=PHOTO_SIZE).train.array
    arrays = read_npz(place)
    images = [array for array in arrays.values() if array.ndim == 4 and len(array)]
    if not images:
        raise ValueError(f"{path} (--images) has no images [n, h, w, 3], only {sorted(arrays)}")
    return images[0]


def main() -> None:
    """Writes the picture to `--out`, and that of the corruptions where it is asked for."""
    images = read_images(flags.FLAGS.images)
    _save(draw_gallery(images), flags.FLAGS.out)
    if flags.FLAGS.corruptions is not None:
        _save(draw_corruptions(images), flags.FLAGS.corruptions)


def _save(figure: Figure, path: str) -> None:
    out = pathlib.Path(path)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=90)
    print(f"wrote {out}")


def start() -> None:
    """Runs the command."""
    # Here, because other commands have flags of these names.
    flags.DEFINE_string("out", "gallery.png", "Picture to write.")
    flags.DEFINE_string("corruptions", None, "Picture of all corruptions to write as well.")
    flags.DEFINE_string("images", None, "npz file or folder of images to jitter and corrupt.")
    cli.run(main)


if __name__ == "__main__":
    start()
