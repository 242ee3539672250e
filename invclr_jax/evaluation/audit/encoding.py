"""Features of pictures from any function, checked as they are computed.

JAX functions run on all devices. The encoder is compiled once, apart from the many transformations
that an audit tries; these are computed a batch at a time on the first device.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.evaluation import checks, passes
from invclr_jax.evaluation.features import as_partial
from invclr_jax.evaluation.sweep import sweep
from invclr_jax.models.function import check_shape, is_traceable, on_host
from invclr_jax.transforms.base import Transform


class Encoding:
    """A function images -> features that is called in batches of one size.

    JAX functions are compiled; others are given NumPy arrays.

    Args:
      function: pictures `[n, h, w, c]`, floats in [0, 1], -> features `[n, d]`.
      example: a picture or more as the function is given them.
      batch_size: pictures that each device takes at a time.
    """

    def __init__(self, function: Callable[[Any], Any], example: Array, batch_size: int):
        self.batch_size = batch_size
        self.is_traced = is_traceable(function, example)
        self.function = jax.jit(function) if self.is_traced else function

    def encode(self, pictures: Float[Array | np.ndarray, "n h w c"]) -> Float[np.ndarray, "n d"]:
        """Features of a few pictures."""
        if not self.is_traced:
            return on_host(self.function, np.asarray(pictures))
        z = self.function(jnp.asarray(pictures))
        check_shape(np.shape(z), len(pictures))
        return np.asarray(z)

    def plain(self, transform: Transform, x: np.ndarray) -> Float[np.ndarray, "n d"]:
        """Features of untransformed pictures."""
        plain = transform.untransformed
        return self._in_batches(lambda rows: _plain(x[rows], untransformed=plain), len(x))

    def transformed(
        self, transform: Transform, x: np.ndarray, alpha: Float[Array, "n a"], beta: Any
    ) -> Float[np.ndarray, "n d"]:
        """Features under one transformation per picture."""

        def pictures(rows):
            drawn = jax.tree.map(lambda leaf: leaf[rows], (alpha, beta))
            return _apply(x[rows], *drawn, apply=transform.apply)

        return self._in_batches(pictures, len(x))

    def of_pictures(self, pictures: np.ndarray) -> Float[np.ndarray, "n d"]:
        """Features of pictures as they are."""
        return self._in_batches(lambda rows: pictures[rows], len(pictures))

    def _in_batches(self, pictures: Callable[[np.ndarray], Any], n: int) -> np.ndarray:
        rows = _Rows(pictures, n)
        if self.is_traced:
            shared = {"encode": as_partial(self.function)}
            z = sweep(passes.plain, shared, rows, self.batch_size, untransformed=_as_it_is)
        else:
            starts = range(0, n, self.batch_size)
            index = [np.arange(start, min(start + self.batch_size, n)) for start in starts]
            z = np.concatenate([self.encode(rows[part]) for part in index])
        checks.finite(jnp.asarray(z), "features")
        return z


@dataclasses.dataclass(frozen=True, eq=False)
class _Rows:
    """Pictures that are computed when they are asked for.

    Attributes:
      pictures: indices -> pictures.
      number: how many there are.
    """

    pictures: Callable[[np.ndarray], Any]
    number: int

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: np.ndarray) -> Any:
        return self.pictures(index)


def _as_it_is(x: Array) -> Array:
    return x


@functools.partial(jax.jit, static_argnames="apply")
def _apply(x: Array, alpha: Array, beta: Any, *, apply: Callable) -> Array:
    return apply(x, alpha, beta)


@functools.partial(jax.jit, static_argnames="untransformed")
def _plain(x: Array, *, untransformed: Callable) -> Array:
    return untransformed(x)
