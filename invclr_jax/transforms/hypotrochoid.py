"""The mathematics of a Spirograph picture: curve, intensity, colour (paper, appendix).

One picture at a time; `draw` maps over a batch. Nothing is checked here, see `spirograph.render`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

EXTENT = 6.0
"""Pixel centres are spread evenly over [-EXTENT, EXTENT] in both directions."""

EPSILON = 1e-8
"""Added to the maximum by which an intensity is divided."""

CHUNK = 256
"""Pictures drawn at once: enough to keep a device busy, little enough to stay in the cache."""


@functools.partial(jax.jit, static_argnames=("size", "normalise", "num_points"))
def draw(
    params: Float[Array, "n 10"], *, size: int, normalise: str, num_points: int
) -> Float[Array, "n {size} {size} 3"]:
    """Draws a batch of pictures, `CHUNK` at a time.

    Args:
      params: columns (m, b, h, sigma, f_r, f_g, f_b, b_r, b_g, b_b), `[n, 10]`.
      size: side in pixels.
      normalise: `image` or `row`: what shares a maximum.
      num_points: on the curve.

    Returns:
      Images `[n, size, size, 3]`.
    """
    one = functools.partial(_draw_one, size=size, normalise=normalise, num_points=num_points)
    if len(params) <= CHUNK:
        return jax.vmap(one)(params)
    # Redrawn when derivatives are taken, so that memory does not grow with the number of pictures.
    return jax.lax.map(jax.checkpoint(one, prevent_cse=False), params, batch_size=CHUNK)


def _draw_one(
    params: Float[Array, "10"], *, size: int, normalise: str, num_points: int
) -> Float[Array, "{size} {size} 3"]:
    m, b, h, sigma = params[:4]
    x, y = _curve(m, b, h, num_points)
    # The exponential of a sum is a product, so that summing over points is a matrix product.
    intensity = jnp.matmul(
        _bumps(x, sigma, size), _bumps(y, sigma, size).T, precision=jax.lax.Precision.HIGHEST
    )
    intensity = intensity / num_points
    brightest = intensity.max(axis=1 if normalise == "row" else None, keepdims=True)
    return _colour(intensity / (brightest + EPSILON), params[4:7], params[7:10])


def _curve(
    m: Float[Array, ""], b: Float[Array, ""], h: Float[Array, ""], num_points: int
) -> tuple[Float[Array, " p"], Float[Array, " p"]]:
    """Points x = (m-h) cos t + h cos(rt), y = (m-h) sin t - h sin(rt), with r = (m-h)/b."""
    last = num_points - 1
    step = np.arange(num_points)
    t = 2 * np.pi * step / last
    ratio = (m - h) / b
    # rt reaches hundreds of radians, where a rounding of float32 moves the pen visibly. Whole
    # turns a step are known exactly, so only the rest of the ratio is multiplied. They are constant
    # between jumps: their derivative is zero, and the derivative of the rest is the ratio's.
    whole = jnp.round(ratio)
    turns = (step * (ratio - whole) + jnp.remainder(step * jnp.remainder(whole, last), last)) / last
    angle = 2 * np.pi * turns
    return (
        (m - h) * jnp.asarray(np.cos(t), m.dtype) + h * jnp.cos(angle),
        (m - h) * jnp.asarray(np.sin(t), m.dtype) - h * jnp.sin(angle),
    )


def _bumps(
    points: Float[Array, " p"], sigma: Float[Array, ""], size: int
) -> Float[Array, "{size} p"]:
    """exp(-(u - point)²/sigma) for each pixel centre u."""
    centres = jnp.asarray(np.linspace(-EXTENT, EXTENT, size), points.dtype)
    return jnp.exp((centres[:, None] - points[None]) ** 2 * (-1 / sigma))


def _colour(
    intensity: Float[Array, "u v"], foreground: Float[Array, "3"], background: Float[Array, "3"]
) -> Float[Array, "u v 3"]:
    """Mixes the two colours."""
    contrast = foreground - background
    return intensity[..., None] * contrast[None, None] + background[None, None]
