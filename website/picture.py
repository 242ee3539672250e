"""Draws the idea in one picture: `python -m website.picture` writes docs/idea-light.png and -dark.

Three Spirograph curves under different nuisances, and where pixels and the shipped encoder put
them: the two directions in which curves differ most compared with views of one curve.
"""

import pathlib
from typing import cast

import jax
import numpy as np
from matplotlib.figure import Figure
from scipy import linalg

import invclr_jax as ic
from invclr_jax.transforms.spirograph import SpirographTransform

CURVES, SHOWN, VIEWS = 3, 5, 60
COLOURS = ("#4c78a8", "#e4572e", "#54a24b")
INK = {"light": "#1c1c28", "dark": "#e6e6ef"}


def views(transform: SpirographTransform, seed: int = 3) -> np.ndarray:
    """Pictures `[curves, views, h, w, 3]` that differ in their nuisances."""
    x_key, key = jax.random.split(jax.random.key(seed))
    x = np.repeat(np.asarray(transform.x.sample(x_key, CURVES)), VIEWS, axis=0)
    pictures = np.asarray(transform.apply(x, *transform.sample(key, len(x))))
    return pictures.reshape(CURVES, VIEWS, *pictures.shape[1:])


def plane(features: np.ndarray, components: int = 8) -> np.ndarray:
    """Two discriminant directions of features `[curves, views, d]`, after `components` principal
    ones, so that few views cannot be told apart by chance."""
    flat = features.reshape(-1, features.shape[-1])
    centred = flat - flat.mean(0)
    scores = centred @ np.linalg.svd(centred, full_matrices=False)[2][:components].T
    scores = scores.reshape(*features.shape[:2], -1)
    within = np.mean([np.cov(curve.T) for curve in scores], axis=0)
    between = np.cov(scores.mean(1).T)
    directions = linalg.eigh(between, within + 1e-6 * np.trace(within) * np.eye(len(within)))[1]
    return scores @ directions[:, -2:]


def draw(encoder: ic.Encoder, mode: str) -> Figure:
    """The picture for light or dark pages."""
    pictures = views(cast(SpirographTransform, encoder.transform))
    z = np.asarray(encoder.encode(pictures.reshape(-1, *pictures.shape[2:])))
    clouds = {
        "pixels: views scatter": pictures.reshape(CURVES, VIEWS, -1),
        "z = f(t(x, α)): views meet": z.reshape(CURVES, VIEWS, -1),
    }
    figure = Figure(figsize=(10, 3), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1.15, 1.6))[0]
    for axis, picture in zip(left.subplots(CURVES, SHOWN).ravel(), _shown(pictures), strict=True):
        axis.imshow(picture, interpolation="bicubic")
        axis.set_axis_off()
    left.suptitle("t(x, α): one curve x a row, other α", color=INK[mode])
    for axis, (title, features) in zip(right.subplots(1, 2), clouds.items(), strict=True):
        for points, colour in zip(plane(features), COLOURS, strict=True):
            axis.scatter(*points.T, s=9, color=colour, alpha=0.8, linewidths=0)
        axis.set_title(title, color=INK[mode])
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_color("#8888")
        axis.patch.set_alpha(0)
    return figure


def _shown(pictures: np.ndarray) -> np.ndarray:
    return pictures[:, :SHOWN].reshape(-1, *pictures.shape[2:])


def main() -> None:
    """Writes both pictures."""
    encoder = ic.load_encoder("spirograph-cpu")
    for mode in INK:
        path = pathlib.Path("docs") / f"idea-{mode}.png"
        draw(encoder, mode).savefig(path, dpi=110, transparent=True)
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
