"""A small residual network on frozen features that makes them more invariant.

The features of several transformations of each picture are computed once; training never sees a
picture again. After "Post-Training Augmentation Invariance" (arXiv 2505.11702).
"""

import dataclasses
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from invclr_jax.objectives.canonical import canonical_penalty
from invclr_jax.objectives.contrastive import info_nce

Objective = Literal["canonical", "simclr"]
OBJECTIVES = ("canonical", "simclr")


class Adapter(nn.Module):
    """z + W2 gelu(W1 (z - mean)/std): the identity until it is trained.

    Attributes:
      hidden: units of the hidden layer.
    """

    hidden: int = 256

    @nn.compact
    def __call__(self, z: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The adapted features."""
        mean = self.variable("statistics", "mean", jnp.zeros, z.shape[1:])
        std = self.variable("statistics", "std", jnp.ones, z.shape[1:])
        x = (z - mean.value[None]) / std.value[None]
        x = nn.gelu(nn.Dense(self.hidden)(x))
        change = nn.Dense(z.shape[1], kernel_init=nn.initializers.zeros)(x)
        return z + std.value[None] * change


@dataclasses.dataclass(frozen=True)
class AdapterSettings:
    """How an adapter is trained.

    Attributes:
      objective: `canonical`, the canonical correlation that is missing between views, or `simclr`,
        InfoNCE between them.
      keep: weight of the term that keeps clean features where they were, in units of their
        variance.
      hidden: units of the hidden layer.
      steps: of Adam, with a cosine schedule to zero.
      learning_rate: at the start.
      batch_size: pictures of a step.
      temperature: of InfoNCE.
      seed: of first weights and batches.
    """

    objective: Objective = "canonical"
    keep: float = 1.0
    hidden: int = 256
    steps: int = 2000
    learning_rate: float = 1e-3
    batch_size: int = 512
    temperature: float = 0.5
    seed: int = 0

    def __post_init__(self):
        if self.objective not in OBJECTIVES:
            raise ValueError(f"objective is {self.objective!r}: use one of {', '.join(OBJECTIVES)}")
        for name in ("hidden", "steps", "batch_size", "learning_rate", "temperature"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}: use a number above 0")
        if not self.keep >= 0:
            raise ValueError(f"keep is {self.keep}: use a number of at least 0")


def fit(
    clean: Float[Array, "n d"], views: Float[Array, "n v d"], settings: AdapterSettings
) -> tuple[Adapter, PyTree]:
    """Trains an adapter on cached features.

    Args:
      clean: of plain pictures.
      views: of transformations of the same pictures.
      settings: how.

    Returns:
      The adapter and its variables.
    """
    if views.ndim != 3 or views.shape[::2] != clean.shape:
        raise ValueError(f"views {views.shape} do not belong to clean features {clean.shape}")
    adapter = Adapter(settings.hidden)
    mean, std = clean.mean(0), clean.std(0)
    statistics = {"mean": mean, "std": jnp.where(std > 0, std, 1)}
    first, steps = jax.random.split(jax.random.key(settings.seed))
    params = adapter.init(first, clean[:2])["params"]
    every = jnp.concatenate([clean[:, None], views], axis=1)
    params = _train(params, statistics, every, steps, settings)
    return adapter, {"params": params, "statistics": statistics}


def loss(
    params: PyTree,
    statistics: PyTree,
    rows: Float[Array, "n w d"],
    key: PRNGKeyArray,
    settings: AdapterSettings,
) -> Float[Array, ""]:
    """The objective between two of a picture's features, and the term that keeps clean ones.

    Args:
      params: of the adapter.
      statistics: of clean features.
      rows: features of a batch, the clean one first.
      key: of the pairs.
      settings: weights and the objective.
    """
    adapter = Adapter(settings.hidden)

    def adapted(z: Array) -> Array:
        return jnp.asarray(adapter.apply({"params": params, "statistics": statistics}, z))

    one, two = jax.random.choice(key, rows.shape[1], (2,), replace=False)
    z, z_prime = adapted(rows[:, one]), adapted(rows[:, two])
    if settings.objective == "canonical":
        objective = canonical_penalty(z, z_prime)
    else:
        objective = info_nce(z, z_prime, settings.temperature)
    moved = (adapted(rows[:, 0]) - rows[:, 0]) / statistics["std"][None]
    return objective + settings.keep * jnp.mean(moved**2)


def _train(params, statistics, every: Array, key: PRNGKeyArray, settings: AdapterSettings):
    """All steps in one compiled program."""
    optimiser = optax.adam(optax.cosine_decay_schedule(settings.learning_rate, settings.steps))
    size = min(settings.batch_size, len(every))

    def step(carry, key):
        params, state = carry
        rows_key, pair_key = jax.random.split(key)
        rows = every[jax.random.randint(rows_key, (size,), 0, len(every))]
        gradient = jax.grad(loss)(params, statistics, rows, pair_key, settings)
        updates, state = optimiser.update(gradient, state)
        return (optax.apply_updates(params, updates), state), None

    @jax.jit
    def run(params, keys):
        return jax.lax.scan(step, (params, optimiser.init(params)), keys)[0][0]

    return run(params, jax.random.split(key, settings.steps))
