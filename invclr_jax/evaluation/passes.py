"""The compiled passes of one batch through transformation and encoder, behind `features.py`.

Methods of a transform are static arguments, compared by the object they belong to; the encoder is
a `Partial`, whose arrays are traced. M is traced too if results do not grow with it.

`on_mesh` runs a pass on several devices, a batch on each: every device executes the program that
one device alone would, so the number of devices changes no bit of a feature.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, Int, PRNGKeyArray

from invclr_jax import parallel


@functools.partial(jax.jit, static_argnames=("function", "mesh", "options"))
def on_mesh(
    shared: dict[str, Any],
    rows: dict[str, Any],
    *,
    function: Callable,
    mesh: jax.sharding.Mesh,
    options: tuple[tuple[str, Any], ...],
) -> Any:
    """One of the passes below on all devices of a mesh.

    Args:
      shared: arguments that every device holds in full, by name.
      rows: arguments whose rows are divided over the devices.
      function: the pass.
      mesh: of `parallel.row_mesh`.
      options: its static arguments by name.
    """

    def local(shared, rows):
        return function(**shared, **rows, **dict(options))

    return jax.shard_map(
        local,
        mesh=mesh,
        in_specs=(parallel.WHOLE, parallel.BY_ROW),
        out_specs=parallel.BY_ROW,
        check_vma=False,
    )(shared, rows)


@functools.partial(jax.jit, static_argnames="apply")
def given(
    encode: Partial, x: Array, alpha: Array, beta: Any, *, apply: Callable
) -> Float[Array, "n d"]:
    """Features under one given transformation per input."""
    return encode(apply(x, alpha, beta))


@functools.partial(jax.jit, static_argnames="untransformed")
def plain(encode: Partial, x: Array, *, untransformed: Callable) -> Float[Array, "n d"]:
    """Features of untransformed inputs."""
    return encode(untransformed(x))


@functools.partial(jax.jit, static_argnames=("sample", "apply", "chunk"))
def running_means(
    encode: Partial,
    x: Array,
    key: PRNGKeyArray,
    index: Int[Array, " n"],
    stops: Int[Array, " k"],
    *,
    sample: Callable,
    apply: Callable,
    chunk: int,
) -> list[Float[Array, "n d"]]:
    """Means over the first `stops[0]`, `stops[1]`, … transformations; one sum is kept."""

    def encoded(first):
        m = first + jnp.arange(chunk)
        alpha, beta = _draw(sample, key, index, m)
        z = _encode_all(encode, apply, x, alpha, beta, chunk)
        return z.astype(jnp.promote_types(z.dtype, jnp.float32)), m

    def until(carry, stop):
        total, first = carry

        def add(i, total):
            z, m = encoded(first + i * chunk)
            return total + jnp.sum(z, axis=0, where=(m < stop)[:, None, None])

        total = jax.lax.fori_loop(0, -((first - stop) // chunk), add, total)
        return (total, stop), total / stop

    z, _ = jax.eval_shape(encoded, 0)
    start = (jnp.zeros(z.shape[1:], z.dtype), jnp.zeros((), stops.dtype))
    return list(jax.lax.scan(until, start, stops)[1])


@functools.partial(jax.jit, static_argnames=("sample", "apply", "number", "chunk", "fix_beta"))
def each(
    encode: Partial,
    x: Array,
    key: PRNGKeyArray,
    index: Int[Array, " n"],
    *,
    sample: Callable,
    apply: Callable,
    number: int,
    chunk: int,
    fix_beta: bool,
) -> tuple[Float[Array, "n m d"], Float[Array, "n m a"]]:
    """Every single feature; with `fix_beta` those of an image share one beta."""
    alpha_key, beta_key = jax.random.split(key) if fix_beta else (key, key)

    def encoded(first):
        m = first + jnp.arange(chunk)
        alpha, beta = _draw(sample, alpha_key, index, m)
        if fix_beta:
            beta = _draw(sample, beta_key, index, jnp.zeros_like(m))[1]
        z = _encode_all(encode, apply, x, alpha, beta, chunk)
        return z, alpha.reshape(chunk, len(index), -1)

    def join(parts):  # [passes, chunk, n, ·] -> [n, number, ·]
        return jnp.moveaxis(parts.reshape(-1, *parts.shape[2:])[:number], 0, 1)

    z, alpha = jax.lax.map(encoded, jnp.arange(0, number, chunk))
    return join(z), join(alpha)


@functools.partial(jax.jit, static_argnames=("sample", "apply", "chunk"))
def predictions(
    encode: Partial,
    x: Array,
    key: PRNGKeyArray,
    index: Int[Array, " n"],
    stops: Int[Array, " k"],
    weights: Float[Array, "k d c"],
    bias: Float[Array, "k c"],
    *,
    sample: Callable,
    apply: Callable,
    chunk: int,
) -> Float[Array, "n k c"]:
    """log of the mean over `stops[k]` transformations of classifier k's probabilities.

    Features are not kept, only the sums.
    """

    def add(i, total):
        m = i * chunk + jnp.arange(chunk)
        z = _encode_all(encode, apply, x, *_draw(sample, key, index, m), chunk)
        scores = jnp.einsum("mnd,kdc->mnkc", z.astype(bias.dtype), weights, precision="highest")
        each = jax.nn.log_softmax(scores + bias[None, None])
        counts = m[:, None, None, None] < stops[None, None, :, None]
        new = jax.nn.logsumexp(each, axis=0, where=counts)
        return jnp.logaddexp(total, new)

    start = jnp.full((len(index), *bias.shape), -jnp.inf, bias.dtype)
    total = jax.lax.fori_loop(0, -(-jnp.max(stops) // chunk), add, start)
    return total - jnp.log(stops).astype(bias.dtype)[None, :, None]


def _draw(sample: Callable, key: PRNGKeyArray, index: Array, m: Array) -> tuple[Array, Any]:
    """alpha and beta of every (m, image), as `[chunk · n, ...]` with m the slow axis."""

    def one(m, i):
        return sample(jax.random.fold_in(jax.random.fold_in(key, i), m), 1)

    drawn = jax.vmap(lambda m: jax.vmap(lambda i: one(m, i))(index))(m)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[3:]), drawn)


def _encode_all(encode, apply, x, alpha, beta, chunk) -> Float[Array, "chunk n d"]:
    copies = jnp.broadcast_to(x[None], (chunk, *x.shape)).reshape(-1, *x.shape[1:])
    z = encode(apply(copies, alpha, beta))
    return z.reshape(chunk, len(x), -1)
