"""Features of whole data sets: untransformed, transformed, and averaged over M transformations.

The m-th transformation of image i is a function of (key, i, m) alone. Results therefore do not
depend on the batch size, and the average over M is a prefix of the average over any larger M.

`encode` maps network inputs `[n, h, w, c]` to z `[n, d]`, each row by itself (batch norm in eval
mode). It is compiled once for each function object and batch shape, so pass the same one each
time. An encoder with many weights is best passed as `jax.tree_util.Partial(apply, variables)`: the
weights are then arguments of the compiled function rather than constants inside it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.evaluation import passes
from invclr_jax.evaluation.checks import Values, at_least_one
from invclr_jax.evaluation.progress import Progress
from invclr_jax.transforms.base import Transform

Encode = Callable[[Array], Array]


def plain_features(
    encode: Encode,
    transform: Transform,
    x: Values,
    *,
    batch_size: int = 256,
    progress: Progress | None = None,
) -> Float[Array, "n d"]:
    """Features of untransformed inputs; raises what `transform.untransformed` raises.

    Args:
      encode: network inputs -> z.
      transform: knows how plain inputs reach the network.
      x: inputs, `[n, ...]`.
      batch_size: inputs at a time.
      progress: callback with the number of finished rows.
    """
    encode = _as_partial(encode)

    def run(rows, _):
        return passes.plain(encode, rows, untransformed=transform.untransformed)

    return in_batches(run, x, batch_size, progress)


def average_features(
    encode: Encode,
    transform: Transform,
    x: Values,
    key: PRNGKeyArray,
    num_samples: int,
    *,
    batch_size: int = 256,
    progress: Progress | None = None,
) -> Float[Array, "n d"]:
    """z^(M) = 1/M Σ_m encode(t(x, alpha_m, beta_m)); memory does not grow with M.

    Args:
      encode: network inputs -> z.
      transform: what to average over.
      x: inputs, `[n, ...]`.
      key: of the transformations.
      num_samples: M.
      batch_size: inputs that the encoder takes at a time.
      progress: callback with the number of finished rows.
    """
    curve = average_features_curve(
        encode, transform, x, key, [num_samples], batch_size=batch_size, progress=progress
    )
    return curve[num_samples]


def average_features_curve(
    encode: Encode,
    transform: Transform,
    x: Values,
    key: PRNGKeyArray,
    nums: Sequence[int],
    *,
    batch_size: int = 256,
    progress: Progress | None = None,
) -> dict[int, Float[Array, "n d"]]:
    """`average_features` for every M of a list, at the cost of the largest.

    Args:
      nums: the Ms, in any order; others as for `average_features`.

    Returns:
      M -> z^(M).
    """
    if not len(nums):
        raise ValueError("the list of Ms is empty: give at least one, such as [1]")
    for num in nums:
        at_least_one(num, "M, the number of transformations to average over,")
    ascending = sorted(set(nums))
    encode, stops = _as_partial(encode), jnp.array(ascending)
    chunk = _transforms_at_once(len(x), batch_size, ascending[-1])

    def run(rows, index):
        methods = {"sample": transform.sample, "apply": transform.apply}
        return passes.running_means(encode, rows, key, index, stops, **methods, chunk=chunk)

    means = in_batches(run, x, batch_size, progress)
    return {num: means[:, position] for position, num in enumerate(ascending)}


def transformed_features(
    encode: Encode,
    transform: Transform,
    x: Values,
    key: PRNGKeyArray,
    num_samples: int,
    *,
    batch_size: int = 256,
    progress: Progress | None = None,
) -> tuple[Float[Array, "n m d"], Float[Array, "n m a"]]:
    """The features that `average_features` averages, each by itself, and their alphas.

    Args and key schedule as for `average_features`; memory grows with M.
    """
    return _separate(encode, transform, x, key, num_samples, batch_size, progress, fix_beta=False)


def conditional_features(
    encode: Encode,
    transform: Transform,
    x: Values,
    key: PRNGKeyArray,
    num_alphas: int,
    *,
    batch_size: int = 256,
    progress: Progress | None = None,
) -> Float[Array, "n p d"]:
    """Features under P alphas and one beta per image, for the conditional variance (Eq. 7).

    Args:
      num_alphas: P; others as for `average_features`.
    """
    return _separate(encode, transform, x, key, num_alphas, batch_size, progress, fix_beta=True)[0]


def features_at(
    encode: Encode,
    transform: Transform,
    x: Values,
    alpha: Float[Values, "n a"],
    beta: Any,
    *,
    batch_size: int = 256,
    progress: Progress | None = None,
) -> Float[Array, "n d"]:
    """Features under given transformations, one per input.

    For draws from other distributions than the transform's own: they need no new compilation.

    Args:
      alpha: `[n, a]`.
      beta: pytree with leading axis n, or None; others as for `average_features`.
    """
    encode = _as_partial(encode)

    def run(rows, index):
        drawn = jax.tree.map(lambda leaf: leaf[index], (alpha, beta))
        return passes.given(encode, rows, *drawn, apply=transform.apply)

    return in_batches(run, x, batch_size, progress)


def _separate(encode, transform, x, key, number, batch_size, progress, *, fix_beta):
    at_least_one(number, "the number of transformations")
    encode = _as_partial(encode)
    options = {
        "number": number,
        "chunk": _transforms_at_once(len(x), batch_size, number),
        "fix_beta": fix_beta,
    }

    def run(rows, index):
        methods = {"sample": transform.sample, "apply": transform.apply}
        return passes.each(encode, rows, key, index, **methods, **options)

    return in_batches(run, x, batch_size, progress)


def _as_partial(encode: Encode) -> Partial:
    """A pytree: arrays bound to it are traced, the function itself is compared by identity."""
    return encode if isinstance(encode, Partial) else Partial(encode)


def _transforms_at_once(num_rows: int, batch_size: int, num_samples: int) -> int:
    """Several where there are fewer inputs than the encoder takes at a time, else one."""
    at_least_one(batch_size, "batch_size")
    most = min(num_samples, max(1, batch_size // max(num_rows, 1)))
    return -(-num_samples // -(-num_samples // most))  # as even as the same number of passes allows


def in_batches(
    run: Callable[[Array, Array], Any],
    x: Values,
    batch_size: int,
    progress: Progress | None = None,
) -> Any:
    """Runs batches of one shape (the last is filled up) and joins their results.

    Args:
      run: rows of x and their indices -> a pytree of arrays with a row for each.
      x: inputs, `[n, ...]`.
      batch_size: inputs at a time.
      progress: callback with the number of finished rows.
    """
    at_least_one(batch_size, "batch_size")
    at_least_one(len(x), "the number of inputs")
    size = min(batch_size, len(x))
    parts = []
    for start in range(0, len(x), size):
        index = np.minimum(np.arange(start, start + size), len(x) - 1)
        used = min(size, len(x) - start)
        result = run(jnp.asarray(x[index]), jnp.asarray(index))
        parts.append(jax.tree.map(lambda rows, used=used: np.asarray(rows[:used]), result))
        if progress is not None:
            progress(used)
    return jax.tree.map(lambda *rows: jnp.asarray(np.concatenate(rows)), *parts)
