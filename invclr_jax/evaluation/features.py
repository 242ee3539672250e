"""Features of whole data sets: untransformed, transformed, and averaged over M transformations.

The m-th transformation of image i is a function of (key, i, m) alone. Results therefore depend
neither on the batch size nor on the number of devices and processes, and the average over M is a
prefix of the average over any larger M.

`encode` maps network inputs `[n, h, w, c]` to z `[n, d]`, each row on its own (batch norm in eval
mode). It is compiled once per function object and batch shape, so pass the same one each
time. An encoder with many weights is best passed as `jax.tree_util.Partial(apply, variables)`: the
weights are then arguments of the compiled function rather than constants inside it.

All functions take `batch_size`, the inputs that each device encodes at a time, `progress`, a
callback with the number of finished rows, and `memory`, the bytes beyond which an array of
features is kept in a file (`storage.py`). All return NumPy arrays.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PRNGKeyArray

from invclr_jax.evaluation import passes
from invclr_jax.evaluation.checks import Values, at_least_one
from invclr_jax.evaluation.progress import Progress
from invclr_jax.evaluation.storage import MEMORY
from invclr_jax.evaluation.sweep import sweep
from invclr_jax.transforms.base import Transform

Encode = Callable[[Array], Array]


def plain_features(
    encode: Encode,
    transform: Transform,
    x: Any,
    *,
    batch_size: int = 256,
    progress: Progress | None = None,
    memory: int = MEMORY,
) -> Float[np.ndarray, "n d"]:
    """Features of untransformed inputs; raises what `transform.untransformed` raises.

    Args:
      encode: network inputs -> z.
      transform: knows how plain inputs reach the network.
      x: inputs, `[n, ...]`.
      batch_size: see the module, as for the others.
      progress: likewise.
      memory: likewise.
    """
    return sweep(
        passes.plain,
        {"encode": as_partial(encode)},
        x,
        batch_size,
        memory=memory,
        progress=progress,
        untransformed=transform.untransformed,
    )


def average_features(
    encode: Encode,
    transform: Transform,
    x: Any,
    key: PRNGKeyArray,
    num_samples: int,
    *,
    batch_size: int = 256,
    progress: Progress | None = None,
    memory: int = MEMORY,
    first: int = 0,
) -> Float[np.ndarray, "n d"]:
    """z^(M) = 1/M Σ_m encode(t(x, alpha_m, beta_m)); memory does not grow with M.

    Args:
      encode: network inputs -> z.
      transform: what to average over.
      x: inputs, `[n, ...]`.
      key: of the transformations.
      num_samples: M.
      batch_size: see the module.
      progress: likewise.
      memory: likewise.
      first: number of the first input, if x is part of something larger.
    """
    curve = average_features_curve(
        encode,
        transform,
        x,
        key,
        [num_samples],
        batch_size=batch_size,
        progress=progress,
        memory=memory,
        first=first,
    )
    return curve[num_samples]


def average_features_curve(
    encode: Encode,
    transform: Transform,
    x: Any,
    key: PRNGKeyArray,
    nums: Sequence[int],
    *,
    batch_size: int = 256,
    progress: Progress | None = None,
    memory: int = MEMORY,
    first: int = 0,
) -> dict[int, Float[np.ndarray, "n d"]]:
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
    shared = {"encode": as_partial(encode), "key": key, "stops": jnp.array(ascending)}
    means = sweep(
        passes.running_means,
        shared,
        x,
        batch_size,
        indexed=True,
        first=first,
        memory=memory,
        progress=progress,
        sample=transform.sample,
        apply=transform.apply,
        chunk=transforms_at_once(len(x), batch_size, ascending[-1]),
    )
    return dict(zip(ascending, means, strict=True))


def transformed_features(
    encode: Encode,
    transform: Transform,
    x: Any,
    key: PRNGKeyArray,
    num_samples: int,
    **options: Any,
) -> tuple[Float[np.ndarray, "n m d"], Float[np.ndarray, "n m a"]]:
    """The individual features that `average_features` averages, and their alphas.

    Args, options and key schedule as for `average_features`; memory grows with M.
    """
    return _separate(encode, transform, x, key, num_samples, fix_beta=False, **options)


def conditional_features(
    encode: Encode,
    transform: Transform,
    x: Any,
    key: PRNGKeyArray,
    num_alphas: int,
    **options: Any,
) -> Float[np.ndarray, "n p d"]:
    """Features under P alphas and one beta per image, for the conditional variance (Eq. 7).

    Args:
      num_alphas: P; others as for `average_features`.
    """
    return _separate(encode, transform, x, key, num_alphas, fix_beta=True, **options)[0]


def features_at(
    encode: Encode,
    transform: Transform,
    x: Any,
    alpha: Float[Values, "n a"],
    beta: Any,
    *,
    batch_size: int = 256,
    progress: Progress | None = None,
    memory: int = MEMORY,
) -> Float[np.ndarray, "n d"]:
    """Features under given transformations, one per input.

    For draws from distributions other than the transform's own, without recompilation.

    Args:
      alpha: `[n, a]`.
      beta: pytree with leading axis n, or None; others as for `average_features`.
    """
    return sweep(
        passes.given,
        {"encode": as_partial(encode)},
        x,
        batch_size,
        rows={"alpha": alpha, "beta": beta},
        memory=memory,
        progress=progress,
        apply=transform.apply,
    )


def _separate(
    encode: Encode,
    transform: Transform,
    x: Any,
    key: PRNGKeyArray,
    number: int,
    *,
    fix_beta: bool,
    batch_size: int = 256,
    progress: Progress | None = None,
    memory: int = MEMORY,
) -> Any:
    at_least_one(number, "the number of transformations")
    return sweep(
        passes.each,
        {"encode": as_partial(encode), "key": key},
        x,
        batch_size,
        indexed=True,
        memory=memory,
        progress=progress,
        sample=transform.sample,
        apply=transform.apply,
        number=number,
        chunk=transforms_at_once(len(x), batch_size, number),
        fix_beta=fix_beta,
    )


def as_partial(encode: Encode) -> Partial:
    """A pytree: arrays bound to it are traced, the function itself is compared by identity."""
    return encode if isinstance(encode, Partial) else Partial(encode)


def transforms_at_once(num_rows: int, batch_size: int, num_samples: int) -> int:
    """Several if there are fewer inputs than the encoder takes at a time, otherwise one."""
    at_least_one(batch_size, "batch_size")
    most = min(num_samples, max(1, batch_size // max(num_rows, 1)))
    return -(-num_samples // -(-num_samples // most))  # as even as the same number of passes allows
