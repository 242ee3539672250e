"""Vision transformers (arXiv 2010.11929) f: images [n, h, w, c] -> representations [n, d].

Blocks normalise first; there is neither batch norm nor dropout. Positions are fixed sines and
cosines in two dimensions, as in MoCo v3 (arXiv 2104.02057), so that one encoder takes pictures of
any size that its patches divide. z is the mean of all patches after the last norm, as in arXiv
2205.01580; the class token of the first paper is selectable.
"""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from invclr_jax.models.dtypes import at_least_float32, lax_precision
from invclr_jax.models.primitives import multiply_tokens

POOLS = ("mean", "token")
FROZEN = "constants"
"""Collection of a patch projection that is not trained: no optimiser and no decay sees it."""

xavier = nn.initializers.xavier_uniform()
Tokens = Float[Array, "n t d"]


class ViT(nn.Module):
    """A vision transformer; see `ViTTiny` and `ViTSmall`.

    Attributes:
      heads: attention heads of each block; a representation has heads · width components.
      depth: blocks.
      width: components of a head; 64 is standard.
      patch: side of a patch in pixels, 4 for CIFAR, 16 for pictures of 64 pixels or more.
      pool: `mean` of all patches, or the class `token`.
      frozen_patches: whether the patch projection stays at its random start, which steadies
        MoCo v3.
      dtype: dtype of the arithmetic, such as bfloat16; None follows images and parameters. Norms,
        attention weights, parameters and the representation are in float32 at least.
      precision: of float32 products on accelerators, see `invclr_jax.models.dtypes.PRECISIONS`.
      remat: whether to recompute each block in the backward pass, to save memory.
    """

    heads: int = 3
    depth: int = 12
    width: int = 64
    patch: int = 4
    pool: str = "mean"
    frozen_patches: bool = False
    dtype: Any = None
    precision: str = "default"
    remat: bool = False

    def __post_init__(self):
        for name in ("heads", "depth", "width", "patch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.representation_dim % 4:
            raise ValueError(
                f"{self.heads} heads of width {self.width} make {self.representation_dim} "
                "components: positions need a multiple of 4"
            )
        if self.pool not in POOLS:
            raise ValueError(f"pool {self.pool!r} is unknown: use one of {', '.join(POOLS)}")
        super().__post_init__()

    @property
    def representation_dim(self) -> int:
        """d, the length of a representation."""
        return self.heads * self.width

    @nn.compact
    def __call__(self, images: Float[Array | np.ndarray, "n h w c"]) -> Float[Array, "n d"]:
        """Encodes normalised images, `[n, h, w, c]`, whose sides the patch divides."""
        if images.ndim != 4 or images.shape[1] % self.patch or images.shape[2] % self.patch:
            raise ValueError(
                f"images of shape {images.shape} do not split into patches of {self.patch} pixels: "
                f"give [n, height, width, channels] with sides that {self.patch} divides"
            )
        x = self._embed(jnp.asarray(images))
        block = nn.remat(Block) if self.remat else Block
        for index in range(self.depth):
            x = block(self.heads, self.dtype, self.precision, name=f"block{index}")(x)
        x = _norm("norm", None)(x.astype(at_least_float32(x.dtype)))
        return x[:, 0] if self.pool == "token" else x.mean(1)

    def _embed(self, images: Array) -> Tokens:
        """Patches times their projection, plus positions; the class token comes first."""
        patches, dim = split(images, self.patch), self.representation_dim
        rows, columns = images.shape[1] // self.patch, images.shape[2] // self.patch
        dtype = at_least_float32(self.dtype)
        shape = (patches.shape[-1], dim)
        if self.frozen_patches:
            start = lambda: xavier(self.make_rng("params"), shape, dtype)  # noqa: E731
            kernel = self.variable(FROZEN, "patches", start).value
            bias = jnp.zeros(dim, dtype)
        else:
            kernel = self.param("patches", xavier, shape, dtype)
            bias = self.param("patches_bias", nn.initializers.zeros, (dim,), dtype)
        patches, kernel, bias = nn.dtypes.promote_dtype(patches, kernel, bias, dtype=self.dtype)
        precision = lax_precision(self.precision)
        x = jnp.matmul(patches, kernel, precision=precision) + bias[None, None]
        x = x + jnp.asarray(positions(rows, columns, dim), x.dtype)[None]
        if self.pool == "mean":
            return x
        token = self.param("token", nn.initializers.normal(0.02), (dim,), dtype)
        return jnp.concatenate([jnp.broadcast_to(token, (len(x), 1, dim)).astype(x.dtype), x], 1)


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)) with four times as many hidden components."""

    heads: int
    dtype: Any = None
    precision: str = "default"

    @nn.compact
    def __call__(self, x: Tokens) -> Tokens:
        """The same shape."""
        dim = x.shape[-1]
        y = _norm("norm1", self.dtype)(x)
        q, k, v = jnp.split(self._dense(3 * dim, "qkv")(y), 3, axis=-1)
        x = x + self._dense(dim, "out")(attend(q, k, v, self.heads, self.precision))
        y = self._dense(4 * dim, "mlp1")(_norm("norm2", self.dtype)(x))
        return x + self._dense(dim, "mlp2")(nn.gelu(y, approximate=False))

    def _dense(self, features: int, name: str) -> nn.Dense:
        dtypes = {"dtype": self.dtype, "param_dtype": at_least_float32(self.dtype)}

        def product(x, kernel, *_, **__):
            return multiply_tokens(x, kernel, self.precision)

        return nn.Dense(features, kernel_init=xavier, name=name, dot_general=product, **dtypes)


class ViTTiny(ViT):
    """ViT-Ti: 192 components, 12 blocks of 3 heads."""


class ViTSmall(ViT):
    """ViT-S: 384 components, 12 blocks of 6 heads."""

    heads: int = 6


def attend(q: Tokens, k: Tokens, v: Tokens, heads: int, precision: str = "default") -> Tokens:
    """softmax(q k'/√width) v in each head, with the weights in float32 at least."""
    q, k, v = (x.reshape(*x.shape[:2], heads, -1) for x in (q, k, v))
    product = functools.partial(jnp.einsum, precision=lax_precision(precision))
    scores = product("nqhw,nkhw->nhqk", q, k) / q.shape[-1] ** 0.5
    weights = jax.nn.softmax(scores.astype(at_least_float32(scores.dtype)))
    mixed = product("nhqk,nkhw->nqhw", weights.astype(v.dtype), v)
    return mixed.reshape(*mixed.shape[:2], -1)


def split(images: Float[Array, "n h w c"], patch: int) -> Float[Array, "n t p"]:
    """Patches in reading order, the pixels of each in (row, column, channel) order."""
    n, h, w, c = images.shape
    grid = images.reshape(n, h // patch, patch, w // patch, patch, c)
    return grid.swapaxes(2, 3).reshape(n, -1, patch * patch * c)


def positions(rows: int, columns: int, dim: int) -> np.ndarray:
    """Sines and cosines of column and row, `[rows * columns, dim]`, in reading order.

    Quarters of the components: sin and cos of the column, sin and cos of the row, at frequencies
    from 1 down to 1/10000.
    """
    frequencies = 10_000.0 ** -(np.arange(dim // 4) / (dim // 4))
    row, column = np.divmod(np.arange(rows * columns), columns)
    angles = [np.outer(place, frequencies) for place in (column, row)]
    return np.concatenate([f(angle) for angle in angles for f in (np.sin, np.cos)], axis=1)


def _norm(name: str, dtype: Any) -> nn.LayerNorm:
    dtypes = {"dtype": dtype, "param_dtype": at_least_float32(dtype)}
    return nn.LayerNorm(epsilon=1e-6, name=name, **dtypes)
