"""Affine maps of pictures, differentiable in their parameters.

Bilinear interpolation between the four pixels around a point. Where a map shrinks a picture, the
pixels are first averaged by a triangle as wide as the shrinking, as Pillow's bilinear `resize`
does: averages over 1, 2, 4 and 8 pixels are made as far as any picture needs them, and those two
that are next to its shrinking are mixed. Interpolation is linear in the pixels, so that a mixture
is read once.
"""

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from invclr_jax.transforms.interpolation import interpolate
from invclr_jax.transforms.pictures import check_alpha, check_images, spread

NAMES = ("angle", "shift_down", "shift_right", "log2_scale", "shear_down", "shear_right")
"""Names of alpha's components."""

LEVELS = 3
"""Shrinking is antialiased up to 2³ times."""


def affine(
    images: Float[Array | np.ndarray, "n h w c"],
    alpha: Float[Array | np.ndarray, "n 6"],
    *,
    antialias: bool = True,
) -> Float[Array, "n h w c"]:
    """Scales, shears, rotates and shifts each picture, in this order, about its centre.

    A point at (down, right) pixels from the centre goes to R·D·S·2^log2_scale·(down, right) + shift
    with S: right += shear_right·down, then D: down += shear_down·right, and the rotation R.
    Beyond the picture its edge pixels are repeated. alpha = 0 is the identity, to the bit.

    Derivatives in alpha are those of bilinear interpolation: they jump where a point crosses a row
    or a column of pixels' centres.

    Args:
      images: `[n, h, w, c]`, any number of channels.
      alpha: one row for each picture, `[n, 6]`, any finite numbers:
        angle: in full turns, counter-clockwise as `np.rot90` and Pillow's `rotate`;
        shift_down, shift_right: where the content moves, as shares of height and width;
        log2_scale: 1 makes the content twice as large;
        shear_down: pixels down for each pixel to the right;
        shear_right: pixels to the right for each pixel down.
      antialias: whether to average pixels where log2_scale < 0 (shears and rotations never do).

    Returns:
      `[n, h, w, c]` in the wider of the dtypes of images and alpha.
    """
    images = check_images(images)
    alpha = check_alpha(alpha, len(images), NAMES)
    dtype = jnp.promote_types(jnp.result_type(images, alpha), jnp.float32)
    images, alpha = images.astype(dtype), alpha.astype(dtype)
    rows, columns = _sources(alpha, *images.shape[1:3])
    if antialias:
        images = _averaged(images, -alpha[:, 3])
    return interpolate(images, rows, columns)


def _sources(
    alpha: Float[Array, "n 6"], height: int, width: int
) -> tuple[Float[Array, "n h w"], Float[Array, "n h w"]]:
    """Rows and columns that each pixel is read from: the inverse map."""
    matrix = _inverse(alpha)
    centre = jnp.array([[(height - 1) / 2, (width - 1) / 2]], alpha.dtype)
    shift = alpha[:, 1:3] * jnp.array([[height, width]], alpha.dtype)
    start = centre - (matrix * shift[:, None]).sum(axis=2)
    place = jnp.indices((height, width), alpha.dtype) - centre.T[..., None]
    place = jnp.concatenate([place, jnp.ones((1, height, width), alpha.dtype)])

    def along(axis):
        # As a product of matrices, so that the sums of its gradient run on all cores.
        line = jnp.concatenate([matrix[:, axis], start[:, axis, None]], axis=1)
        positions = jnp.matmul(line, place.reshape(3, -1), precision="highest")
        return positions.reshape(-1, height, width)

    return along(0), along(1)


def _inverse(alpha: Float[Array, "n 6"]) -> Float[Array, "n 2 2"]:
    """(R·D·S·2^log2_scale)⁻¹ in coordinates (down, right)."""
    turns, _, _, log2_scale, shear_down, shear_right = alpha.T
    cos, sin = jnp.cos(2 * np.pi * turns), jnp.sin(2 * np.pi * turns)
    # Rows of D⁻¹ and S⁻¹ applied to R⁻¹ = [[cos, sin], [-sin, cos]].
    down = jnp.stack([cos + shear_down * sin, sin - shear_down * cos], axis=1)
    right = jnp.stack([-sin, cos], axis=1) - shear_right[:, None] * down
    return jnp.exp2(-log2_scale)[:, None, None] * jnp.stack([down, right], axis=1)


def _averaged(
    images: Float[Array, "n h w c"], log2_shrinking: Float[Array, " n"]
) -> Float[Array, "n h w c"]:
    """The pictures averaged as much as they will shrink."""
    margin = 2**LEVELS - 1
    pad = ((0, 0), (margin, margin), (margin, margin), (0, 0))

    def averaged(images, log2_shrinking):
        return _between_levels(jnp.pad(images, pad, mode="edge"), log2_shrinking, 0)

    shrinks = (log2_shrinking > 0).any()
    return lax.cond(shrinks, averaged, lambda images, _: images, images, log2_shrinking)


def _between_levels(wide: Array, log2_shrinking: Array, level: int) -> Float[Array, "n h w c"]:
    """Interpolated between averages by triangles of half-width 2^level and wider.

    A triangle is the next narrower one averaged with weights (1, 2, 1)/4 at its own distance.

    Args:
      wide: the first of these averages, with a margin for the others.
      log2_shrinking: of each picture.
      level: of `wide`.
    """
    fine = _inner(wide, 2**LEVELS - 2**level)
    for axis in (1, 2):
        wide = _smoothed(wide, 2**level, axis)
    level += 1
    further = functools.partial(_between_levels, level=level)
    last = functools.partial(_inner, margin=2**LEVELS - 2**level)
    if level == LEVELS:
        coarse = last(wide)
    else:  # most often no picture shrinks so much
        needed = (log2_shrinking > level).any()
        coarse = lax.cond(needed, further, lambda wide, _: last(wide), wide, log2_shrinking)
    share = spread(jnp.clip(log2_shrinking - (level - 1), 0, 1))
    return fine + share * (coarse - fine)


def _inner(wide: Array, margin: int) -> Array:
    height, width = (side - 2 * margin for side in wide.shape[1:3])
    return wide[:, margin : margin + height, margin : margin + width]


def _smoothed(images: Array, step: int, axis: int) -> Array:
    length = images.shape[axis] - 2 * step
    before, here, after = (
        lax.slice_in_dim(images, start, start + length, axis=axis) for start in (0, step, 2 * step)
    )
    return (before + 2 * here + after) / 4
