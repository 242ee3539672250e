"""What a derivative sees of the change made by alpha, and how a representation moves with it."""

import dataclasses
import functools
from collections.abc import Mapping
from types import MappingProxyType

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from invclr_jax.checkpoint import Encoder
from invclr_jax.objectives.features import unit_rows
from invclr_jax.objectives.penalty import finite_penalty, penalty
from invclr_jax.transforms.base import Transform

DRAWS, STEPS = 16, 32
COLUMNS = {
    "eval/unit/first_order": "V, first order",
    "eval/unit/finite": "V",
    "train/unit/first_order": "V, first order, batch norm of training",
    "train/unit/finite": "V, batch norm of training",
    "eval/relative/first_order": "V/V_total, first order",
    "eval/relative/finite": "V/V_total",
    "largest_step": "largest of 32 steps",
}


@dataclasses.dataclass(frozen=True)
class Network:
    """What encoders of different weights share, and hence their compiled programs.

    Attributes:
      module: the encoder.
      transform: the transformation.
      train: whether batch norm uses the batch's statistics, as in training.
    """

    module: nn.Module
    transform: Transform
    train: bool

    def represent(self, variables: PyTree, x: Array, alpha: Array) -> Array:
        """z of x under alpha."""
        images = self.transform.apply(x, alpha, None)
        mutable = ["batch_stats"]  # updated and discarded
        return self.module.apply(variables, images, train=self.train, mutable=mutable)[0]


@functools.partial(jax.jit, static_argnums=(0, 1))
def both_orders(network: Network, feature: str, variables, x: Array, keys) -> dict[str, Array]:
    """First-order V and V itself, from the same draws of alpha and alpha'."""
    box, f = network.transform.alpha, functools.partial(network.represent, variables, x)

    def one(key):
        alpha_key, prime_key, noise_key = jax.random.split(key, 3)
        alpha, alpha_prime = (box.sample(k, len(x)) for k in (alpha_key, prime_key))
        options = {"box": box, "key": noise_key, "estimator": "forward", "num_samples": 1}
        return {
            "first_order": penalty(f, alpha, **options, feature=feature) / 2,
            "finite": finite_penalty(f(alpha), f(alpha_prime), feature=feature) / 2,
        }

    return jax.lax.map(one, keys)


@functools.partial(jax.jit, static_argnums=0)
def largest_step(network: Network, variables, x: Array, key) -> Array:
    """The longest of 32 equal steps from alpha to alpha', as a share of their sum: 1/32 or more."""
    alpha, alpha_prime = (network.transform.alpha.sample(k, len(x)) for k in jax.random.split(key))

    def at(way):
        return unit_rows(network.represent(variables, x, alpha + way * (alpha_prime - alpha)))

    walk = jax.lax.map(at, jnp.linspace(0, 1, STEPS + 1))
    lengths = jnp.linalg.norm(jnp.diff(walk, axis=0), axis=-1)
    return (lengths.max(0) / lengths.sum(0)).mean()


def measure(encoder: Encoder, x: Array, seed: int) -> dict[str, float]:
    """All columns for one encoder."""
    found: dict[str, float] = {}
    keys = jax.random.split(jax.random.key(seed), DRAWS)
    for mode, train in (("eval", False), ("train", True)):
        network = Network(encoder.module, encoder.transform, train)
        for feature in ("unit", "relative"):
            values = both_orders(network, feature, encoder.variables, x, keys)
            found |= {f"{mode}/{feature}/{k}": float(np.mean(v)) for k, v in values.items()}
    network = Network(encoder.module, encoder.transform, train=False)
    step = largest_step(network, encoder.variables, x, keys[0])
    return found | {"largest_step": float(step)}


def table(
    rows: Mapping[str, Mapping[str, float]], columns: Mapping[str, str] = MappingProxyType(COLUMNS)
) -> str:
    """The results as Markdown, the mean over seeds of each run.

    Args:
      rows: what was measured, by `run/seed`.
      columns: what to show, and under which heading.
    """
    head = ["run", "seeds", *columns.values()]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name in sorted({name.rpartition("/")[0] for name in rows}):
        seeds = [row for key, row in rows.items() if key.rpartition("/")[0] == name]
        cells = (f"{np.mean([row[column] for row in seeds]):.3g}" for column in columns)
        lines.append(f"| {name} | {len(seeds)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
