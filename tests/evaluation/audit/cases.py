"""A transformation and linear encoders whose measures have closed forms.

A picture is 0.5 + 0.25 (cos φ, sin φ, s, …): a point on a circle in its first two pixels, and
independent pixels after them. The transformation turns the circle by an angle alpha_0 and adds
alpha_1 to one pixel. Linear encoders of it have unit features (cos(φ + alpha), sin(φ + alpha)).
"""

import dataclasses

import jax.numpy as jnp
import numpy as np

from invclr_jax.transforms.base import Box

WIDTH = 0.8


@dataclasses.dataclass(frozen=True)
class Turn:
    """Turns the first two pixels by alpha_0; adds alpha_1/10 to the third."""

    alpha: Box = dataclasses.field(
        default_factory=lambda: Box([-WIDTH, -1], [WIDTH, 1], ["turn", "shade"])
    )

    def sample(self, key, n):
        return self.alpha.sample(key, n), None

    def apply(self, x, alpha, beta):
        x = jnp.asarray(x)
        u, v = x[:, 0, 0, 0] - 0.5, x[:, 0, 1, 0] - 0.5
        c, s = jnp.cos(alpha[:, 0]), jnp.sin(alpha[:, 0])
        x = x.at[:, 0, 0, 0].set(0.5 + c * u - s * v).at[:, 0, 1, 0].set(0.5 + s * u + c * v)
        return x.at[:, 1, 0, 0].add(alpha[:, 1] / 10)

    def untransformed(self, x):
        return jnp.asarray(x)


def pictures(n, seed=0):
    rng = np.random.default_rng(seed)
    phi = 2 * np.pi * (np.arange(n) + 0.5) / n
    x = rng.uniform(0.4, 0.6, (n, 4, 4, 1))
    x[:, 0, 0, 0], x[:, 0, 1, 0] = 0.5 + 0.25 * np.cos(phi), 0.5 + 0.25 * np.sin(phi)
    return x.astype(np.float32)[rng.permutation(n)]


def circle(images):
    """Reads the circle: unit features."""
    return 4 * (images.reshape(len(images), -1)[:, :2] - 0.5)


def rest(images):
    """Reads what is neither turned nor shaded: an invariant encoder."""
    return images.reshape(len(images), -1)[:, 8:12] - 0.3


def shade(images):
    """The shaded pixel and one that nothing changes."""
    flat = images.reshape(len(images), -1) - 0.5
    return jnp.stack([2 * flat[:, 4], flat[:, 9]], axis=1)
