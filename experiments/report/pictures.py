"""Pictures of Spirograph for the report: drawn here, so no data set is needed."""

import functools
import io

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from invclr_jax.gallery import PENS, SHIFTS, shifted_backgrounds, swept_pens
from invclr_jax.transforms.spirograph import SpirographTransform, render

TEXT = (
    "Spirograph has four factors of interest (m and b shape the curve, σ is its width, f_r its "
    "red) and six nuisances (the pen h, green and blue of the curve, the background). A row shows "
    "one choice of the factors under different nuisances: an invariant encoder maps a row to one "
    "point."
)
CURVES, TILE, FRAMES = 7, 120, 36


@functools.cache
def _frames() -> np.ndarray:
    """A strip of curves whose nuisances go through one cycle, `[frame, height, width, 3]` bytes."""
    rng = np.random.default_rng(5)
    low, high = np.array([2, 0.1, 0.25, 0.4]), np.array([5, 1.1, 0.6, 1.0])
    x = low + (high - low) * rng.random((CURVES, 4))
    phase = 2 * np.pi * (np.arange(FRAMES)[:, None] / FRAMES + rng.random(CURVES)[None])
    turn = (1 + np.sin(phase[..., None] + np.arange(6))) / 2  # each nuisance a little later
    box_low = np.array([0.5, 0.4, 0.4, 0.0, 0.0, 0.0])
    alpha = box_low + turn * np.array([2.0, 0.6, 0.6, 0.35, 0.35, 0.35])
    strips = []
    for frame in alpha:
        m, b, sigma, f_r = x.T
        params = np.column_stack([m, b, frame[:, 0], sigma, f_r, frame[:, 1:]])
        drawn = np.asarray(render(jnp.asarray(params, jnp.float32), size=TILE))
        strips.append(np.concatenate(list(drawn), axis=1))
    return np.rint(255 * np.stack(strips)).astype(np.uint8)


def animation() -> tuple[bytes, str, str]:
    """The strip as an animated WebP: contents, kind and description."""
    frames = [Image.fromarray(frame) for frame in _frames()]
    buffer = io.BytesIO()
    options = {"save_all": True, "duration": 90, "loop": 0, "quality": 70}
    frames[0].save(buffer, "webp", append_images=frames[1:], **options)
    return buffer.getvalue(), "webp", "Spirograph curves whose nuisances change"


def still() -> bytes:
    """Its first frame as PNG."""
    buffer = io.BytesIO()
    Image.fromarray(_frames()[0]).save(buffer, "png")
    return buffer.getvalue()


def gallery() -> list[Figure]:
    """Three panels: nuisances, the pen, the background."""
    transform = SpirographTransform(size=64)
    x_key, alpha_key = jax.random.split(jax.random.key(1))
    x = jnp.repeat(transform.x.sample(x_key, 3), 4, axis=0)
    images = np.asarray(transform.apply(x, *transform.sample(alpha_key, 12)))
    pens = _grid(swept_pens(), 2, "The pen", [f"h = {h:g}" for h in PENS])
    shifts = [f"shift {s:g}" for s in SHIFTS]
    return [
        _grid(images, 4, "Three curves, four nuisances each"),
        pens,
        _grid(shifted_backgrounds(), 2, "The background", shifts),
    ]


def _grid(images: np.ndarray, columns: int, title: str, labels: list[str] | None = None) -> Figure:
    rows = len(images) // columns
    figure = Figure(figsize=(4.6, 3.6), layout="constrained")
    figure.suptitle(title, fontsize=11)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for at, (axis, image) in enumerate(zip(axes, images, strict=True)):
        axis.imshow(image)
        axis.axis("off")
        if labels:
            axis.set_title(labels[at], fontsize=8)
    return figure
