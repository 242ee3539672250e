"""Parts of a run as a user would write them, outside the package."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from invclr_jax.data import Dataset, Split
from invclr_jax.methods.base import Outcome
from invclr_jax.methods.simclr import SimCLR
from invclr_jax.objectives.contrastive import info_nce
from invclr_jax.transforms.base import Box


class PlainNet(nn.Module):
    """Neither batch norm nor dropout, and no argument that says so."""

    width: int = 4

    @nn.compact
    def __call__(self, images):
        x = nn.relu(nn.Conv(self.width, (3, 3), strides=2)(images))
        return nn.Dense(5)(x.mean((1, 2)))


class NormNet(nn.Module):
    """Flax's batch norm, told by `train`."""

    width: int = 4

    @nn.compact
    def __call__(self, images, train=False):
        x = nn.Conv(self.width, (3, 3))(images)
        x = nn.BatchNorm(use_running_average=not train, axis_name="devices")(x)
        return nn.relu(x).mean((1, 2))


class DropoutNet(nn.Module):
    """Dropout, told by `deterministic`."""

    rate: float = 0.5

    @nn.compact
    def __call__(self, images, deterministic=True):
        x = nn.Dense(6)(images.reshape(len(images), -1))
        return nn.Dropout(self.rate, deterministic=deterministic)(nn.relu(x))


class Head(nn.Module):
    """A head of one layer."""

    output_dim: int = 3

    @nn.compact
    def __call__(self, z):
        return nn.Dense(self.output_dim)(z)


class Shade:
    """Multiplies pictures by alpha. No dataclass: its one argument is an attribute."""

    def __init__(self, darkest=0.5):
        self.darkest = darkest
        self.alpha = Box(low=np.array([darkest]), high=np.array([1.0]))

    def sample(self, key, n):
        return self.alpha.sample(key, n), None

    def apply(self, x, alpha, beta):
        return self.untransformed(x) * alpha[:, :, None, None]

    def untransformed(self, x):
        return x / 255 if x.dtype == jnp.uint8 else x


class WarmSimCLR(SimCLR):
    """A method of one's own: SimCLR with a temperature that its options set."""

    defaults = SimCLR.defaults | {"contrastive.temperature": (0.9, 0.9)}

    def loss(self, params, statistics, state, x, *, step, key, penalised):
        keys = jax.random.split(key, 3)
        draws = self.draw(keys[0], x, penalised)
        z_prime, _ = self.view(params, statistics, x, draws.second, keys[1])
        value, z, encoder = self.penalised_view(params, statistics, x, draws, keys[1], z_prime)
        p, head = self.project(params, statistics, z, keys[2])
        q, _ = self.project(params, statistics, z_prime, keys[2])
        contrast = info_nce(p, q, self.temperature, axis=self.axis)
        total, terms = self.add_penalty("warm", contrast, value, step, penalised)
        return total, Outcome({"encoder": encoder, "head": head}, state, z, terms)


def pictures(n=96, seed=0):
    """A data set by import path."""
    rng = np.random.default_rng(seed)

    def split(n):
        labels = np.arange(n, dtype=np.int32) % 2
        images = rng.integers(0, 120, (n, 8, 8, 3), dtype=np.uint8)
        images[..., 0] += (labels * 100)[:, None, None].astype(np.uint8)
        return Split(images, labels)

    return Dataset("mine", split(n), split(n // 2), 2, (0.3, 0.2, 0.2), (0.2, 0.2, 0.2))


def halving(start=0.1):
    """A schedule by import path."""
    return optax.exponential_decay(start, 1, 0.5)


class Collector:
    """A metric writer that keeps everything in memory."""

    def __init__(self, fail_at=None):
        self.seen, self.closed, self.fail_at = [], 0, fail_at

    def write(self, step, metrics):
        if step == self.fail_at:
            raise RuntimeError("the wire is cut")
        self.seen.append((step, dict(metrics)))

    def close(self):
        self.closed += 1
