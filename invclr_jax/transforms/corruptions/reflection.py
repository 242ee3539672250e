"""Linear maps along rows and columns, and pictures continued beyond their edges by mirroring."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def mirrored(position: Array, length: int, *, edge: float) -> Array:
    """Positions brought back into the picture by mirroring.

    Args:
      position: in pixels, 0 at the centre of the first.
      length: number of pixels.
      edge: how far outside the centre of the edge pixel the mirror stands: 0 for OpenCV's
        BORDER_REFLECT_101, 0.5 for SciPy's "reflect".
    """
    room = max(length - 1 + 2 * edge, 1e-6)
    along = jnp.mod(position + edge, 2 * room)
    return jnp.minimum(along, 2 * room - along) - edge


def smooth(values: Float[Array, "n h w 1"], deviation: float) -> Float[Array, "n h w 1"]:
    """A Gaussian filter cut off at three deviations and mirrored as SciPy's "reflect"."""
    if deviation == 0:
        return values
    rows, columns = (_smoother(length, deviation) for length in values.shape[1:3])
    return combine(combine(values, rows, axis=1), columns, axis=2)


def combine(images: Float[Array, "n h w c"], weights: np.ndarray, *, axis: int) -> Array:
    """The same linear combinations `[out, in]` of all pictures' rows (axis 1) or columns (2)."""
    matrix = jnp.asarray(weights, images.dtype)
    sums = "oh,nhwc->nowc" if axis == 1 else "ow,nhwc->nhoc"
    return jnp.einsum(sums, matrix, images, precision="highest")


def _smoother(length: int, deviation: float) -> np.ndarray:
    reach = int(3 * deviation + 0.5)
    steps = np.arange(-reach, reach + 1)
    kernel = np.exp(-(steps**2) / (2 * deviation**2))
    matrix = np.zeros((length, length))
    for place in range(length):
        sources = np.mod(place + steps, 2 * length)
        sources = np.minimum(sources, 2 * length - 1 - sources)
        np.add.at(matrix[place], sources, kernel / kernel.sum())
    return matrix
