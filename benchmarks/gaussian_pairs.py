"""Pairs of known canonical correlation, and estimators of W's gradient for small batches.

x has 2d independent normal components; component i has variance 1/i in random order, and its
correlation between the two views is drawn from Beta(0.7, 0.7). The encoder is z = x M with M of
shape [2d, d], so W and its gradient in M are known: the correlations of the best d components can
be reached, those of the others have to be given up.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from invclr_jax.objectives.canonical import canonical_penalty

State = tuple[Array, Array, Array]
"""Running T, running C and the sum of their weights."""
Way = Callable[[Array, Array, Array, State], tuple[Array, State]]
"""(z, z', key, state) -> (an estimate of W, state)."""


@dataclasses.dataclass(frozen=True)
class Pairs:
    """The data.

    Attributes:
      num_pairs: K, pairs in a batch.
      dim: d, components of z.
    """

    num_pairs: int
    dim: int

    @functools.cached_property
    def _truth(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        size = 2 * self.dim
        variance = rng.permutation(1 / np.arange(1, size + 1))
        start = np.linalg.qr(rng.normal(size=(size, self.dim)))[0]
        return variance, rng.beta(0.7, 0.7, size=size), start.astype(np.float32)

    @property
    def start(self) -> Array:
        """M before training, orthonormal columns."""
        return jnp.asarray(self._truth[2])

    @property
    def least(self) -> float:
        """The smallest W (without a ridge) that any M can have."""
        return 1 - float(np.sort(self._truth[1])[-self.dim :].mean())

    def missing(self, matrix: Array, ridge: float = 0.01) -> Array:
        """W of the whole distribution."""
        variance, correlation, _ = self._truth
        total, cross = (
            matrix.T @ (jnp.asarray(weights, matrix.dtype)[:, None] * matrix)
            for weights in (variance, variance * correlation)
        )
        return _missing(total, cross, ridge)

    def draw(self, key: Array) -> tuple[Array, Array]:
        """x and x' of a batch."""
        variance, correlation, _ = self._truth
        shape = (self.num_pairs, len(variance))
        common, *own = (jax.random.normal(k, shape) for k in jax.random.split(key, 3))
        shared, rest = (
            jnp.asarray(np.sqrt(part), jnp.float32)[None]
            for part in (variance * correlation, variance * (1 - correlation))
        )
        return shared * common + rest * own[0], shared * common + rest * own[1]


def _missing(total: Array, cross: Array, ridge: float | Array) -> Array:
    dim = len(total)
    eps = ridge * jnp.trace(total) / dim
    return 1 - jnp.trace(jnp.linalg.solve(total + eps * jnp.eye(dim), cross)) / dim


def by_ridge(ridge: float) -> Way:
    """W of the batch with some ridge."""
    return lambda z, z_prime, key, state: (canonical_penalty(z, z_prime, ridge=ridge), state)


def by_subspace(size: int) -> Way:
    """W in a random orthonormal subspace, a new one at each step."""

    def way(z, z_prime, key, state):
        basis = jnp.linalg.qr(jax.random.normal(key, (z.shape[1], size)))[0]
        return canonical_penalty(z @ basis, z_prime @ basis), state

    return way


def by_running_moments(decay: float, ridge: float = 0.01) -> Way:
    """W of running T and C; only this batch's share is differentiated, but with full weight."""

    def way(z, z_prime, key, state):
        now = (*_moments(z, z_prime), jnp.ones(()))
        fixed = jax.lax.stop_gradient(now)
        new = jax.tree.map(lambda old, moment: decay * old + (1 - decay) * moment, state, fixed)
        total, cross = (
            part / new[2] + moment - jax.lax.stop_gradient(moment)
            for part, moment in zip(new[:2], now[:2], strict=True)
        )
        return _missing(total, cross, ridge), new

    return way


def by_shrinkage() -> Way:
    """W with the ridge that oracle-approximating shrinkage (Chen et al., 2010) gives T."""

    def way(z, z_prime, key, state):
        total, cross = _moments(z, z_prime)
        n, dim = 2 * len(z), len(total)
        square, trace = jnp.sum(total**2), jnp.trace(total) ** 2
        share = ((1 - 2 / dim) * square + trace) / ((n + 1 - 2 / dim) * (square - trace / dim))
        share = jax.lax.stop_gradient(jnp.minimum(share, 0.99))
        return _missing(total, cross, share / (1 - share)), state

    return way


def _moments(z: Array, z_prime: Array) -> tuple[Array, Array]:
    both = jnp.concatenate([z, z_prime])
    mean = both.mean(0, keepdims=True)
    a, b = z - mean, z_prime - mean
    return (a.T @ a + b.T @ b) / len(both), (a.T @ b + b.T @ a) / len(both)


def fresh_state(dim: int) -> State:
    """Before the first batch."""
    return jnp.zeros((dim, dim)), jnp.zeros((dim, dim)), jnp.zeros(())


def estimate(pairs: Pairs, way: Way) -> Callable[..., Any]:
    """`(M, key, state) -> ((W of a fresh batch, new state), its gradient in M)`."""

    def loss(matrix, key, state):
        data_key, way_key = jax.random.split(key)
        z, z_prime = (x @ matrix for x in pairs.draw(data_key))
        return way(z, z_prime, way_key, state)

    return jax.value_and_grad(loss, has_aux=True)
