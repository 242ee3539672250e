"""What all methods share: random views of a batch, the penalised first view, and chunks.

Random numbers are drawn for the whole batch from one key, and each device takes its rows: a run on
eight devices sees the same transformations as a run on one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from invclr_jax import parallel
from invclr_jax.objectives import penalty
from invclr_jax.training.state import Learner


class Draws(NamedTuple):
    """The random numbers of a step, one row an image: two transformations and the penalty's."""

    first: Any
    second: Any
    noise: Any


class Outcome(NamedTuple):
    """What a method's loss hands to the step besides its value.

    Attributes:
      batch_stats: updated running statistics of encoder and head.
      method: updated state of the method.
      representation: z of the first view, `[n, d]`, for the online probe.
      terms: named parts of the loss, for the log.
    """

    batch_stats: PyTree
    method: PyTree
    representation: Array
    terms: dict[str, Array]


def draw(learner: Learner, key: PRNGKeyArray, n: int, penalised: bool) -> Draws:
    """Random numbers for this device's `n` images."""
    first, second, noise = jax.random.split(key, 3)
    total = n * parallel.axis_size(learner.axis)
    options = learner.config.penalty
    draws = Draws(
        first=learner.transform.sample(first, total),
        second=learner.transform.sample(second, total),
        noise=penalty.draw(
            noise,
            total,
            box=learner.transform.alpha,
            estimator=options.estimator,
            num_samples=options.num_samples,
            dim=learner.encoder.representation_dim,
        )
        if penalised
        else None,
    )
    return parallel.local_rows(draws, learner.axis)


def view(
    learner: Learner, params: PyTree, batch_stats: PyTree, x: Array, transformation: Any
) -> tuple[Float[Array, "n d"], PyTree]:
    """Representation z = f(t(x, alpha, beta)) and the encoder's updated running statistics."""
    alpha, beta = transformation
    return learner.encode(params, batch_stats, learner.transform.apply(x, alpha, beta))


def penalised_view(
    learner: Learner,
    params: PyTree,
    batch_stats: PyTree,
    x: Array,
    draws: Draws,
    z_prime: Array | None = None,
) -> tuple[Float[Array, ""], Float[Array, "n d"], PyTree]:
    """The penalty at the first view, beside what `view` gives; one forward pass serves both.

    Without noise (plain contrastive learning, or a step that `penalty.every` leaves out) the
    penalty is zero.
    """
    alpha, beta = draws.first
    if draws.noise is None:
        z, stats = view(learner, params, batch_stats, x, draws.first)
        return jnp.zeros((), z.dtype), z, stats

    def represent(alpha):
        return view(learner, params, batch_stats, x, (alpha, beta))

    options = learner.config.penalty
    same_beta = beta is None or options.pair == "views"
    value, z, stats = penalty.estimate(
        represent,
        alpha,
        draws.noise,
        box=learner.transform.alpha,
        estimator=options.estimator,
        feature=options.feature,
        axis=learner.axis,
        z_prime=z_prime if same_beta else None,
        ridge=options.ridge,
        temperature=learner.config.contrastive.temperature,
    )
    if options.canonical and z_prime is not None:
        missing = penalty.canonical_penalty(z, z_prime, ridge=options.ridge, axis=learner.axis)
        value = value + options.canonical / options.weight * missing
    return value, z, stats


def add_penalty(
    learner: Learner, step: Array, contrast: Array, value: Array, penalised: bool
) -> tuple[Array, dict[str, Array]]:
    """The loss `contrast + λ·min(penalty, clip)` and its terms by name, for the log.

    The clip is on the mean over all devices. One step in `every` carries the weight of all.
    """
    if not penalised:
        return contrast, {"contrastive": contrast}
    options = learner.config.penalty
    mean = parallel.mean_over_devices(value, learner.axis)
    clipped = penalty.clip_from_above(mean, options.clip)
    loss = contrast + learner.penalty_weight(step) * options.every * clipped
    return loss, {"contrastive": contrast, "penalty": mean}


def map_chunks(
    function: Callable[[PyTree], tuple[PyTree, PyTree]], rows: PyTree, chunks: int
) -> tuple[PyTree, PyTree]:
    """Applies `function` to equal parts of the rows with the activations of one part alive.

    The backward pass recomputes each part, so a contrastive loss of all rows costs the memory of
    one part and its gradient is exact.

    Args:
      function: rows -> (outputs with a leading row axis, values to be averaged over the parts).
      rows: pytree with leading axis n.
      chunks: number of parts; divides n.

    Returns:
      All outputs in order, and the averaged values.
    """
    if chunks == 1:
        return function(rows)
    outputs, values = jax.lax.map(jax.checkpoint(function), parallel.shard_rows(rows, chunks))
    merge = lambda leaf: leaf.reshape(-1, *leaf.shape[2:])  # noqa: E731
    return jax.tree.map(merge, outputs), jax.tree.map(lambda leaf: leaf.mean(0), values)
