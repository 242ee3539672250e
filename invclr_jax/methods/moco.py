"""MoCo v2 (He et al., 2020; Chen et al., 2020b): a momentum encoder and a queue of its keys.

Batch norm lets an encoder recognise the batch that a key comes from. MoCo's remedy is to encode the
keys in another order, so that a query and its key are normalised with different companions. Here
the batch falls into batch-norm groups (`batch_norm.groups`) whatever the number of devices, so the
remedy works on a single one too.
"""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from invclr_jax import parallel
from invclr_jax.methods import collapse
from invclr_jax.methods.base import Method, Outcome
from invclr_jax.methods.chunks import map_chunks
from invclr_jax.methods.momentum import momentum_update
from invclr_jax.models.heads import MoCoHead
from invclr_jax.objectives import contrastive
from invclr_jax.objectives.features import unit_rows


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class MoCo(Method):
    """MoCo v2 with the penalty on the query encoder.

    Attributes:
      temperature: the divisor tau of the cosine similarity.
      queue_size: keys that the queue holds; the batch size divides it.
      momentum: weight of the key encoder in its update.
      shuffle: whether keys are encoded in another order than queries.
      projection_dim: components of a projection.
    """

    temperature: float = 0.2
    queue_size: int = 2048
    momentum: float = 0.99
    shuffle: bool = True
    projection_dim: int = 128

    losses: ClassVar = ("moco",)
    passes: ClassVar = 4  # keys have no backward pass
    most_views: ClassVar = 2
    options: ClassVar = {"queue_size": 2048, "momentum": 0.99, "shuffle": None}
    defaults: ClassVar = Method.defaults | {
        "contrastive.loss": ("moco", "moco"),
        "contrastive.temperature": (0.2, 0.5),
        "optimizer.weight_decay": (1e-4, 1e-6),
        "batch_norm.scope": ("groups", "groups"),
        "batch_norm.groups": (8, 8),
        "moco.shuffle": (True, False),
        "num_epochs": (200, 100),
    }

    @classmethod
    def check(cls, config):
        """Refuses a queue that does not fit."""
        size, queue, momentum = config.batch_size, config.moco.queue_size, config.moco.momentum
        if not 0 <= momentum <= 1:
            raise ValueError(f"config.moco.momentum is {momentum!r}: use a number from 0 to 1")
        if not 1 <= queue < 2**31:
            raise ValueError(f"config.moco.queue_size is {queue!r}: use an integer of at least 1")
        if queue % size:
            fitting = [n for n in range(1, queue + 1) if queue % n == 0]
            nearest = sorted(sorted(fitting, key=lambda n: abs(n - size))[:2], reverse=True)
            raise ValueError(
                f"batch size {size} does not divide the queue length {queue}: "
                f"use {' or '.join(map(str, nearest))}"
            )

    @classmethod
    def default_head(cls, encoder, output_dim):
        """MoCo v2's head, without batch norm."""
        return MoCoHead(output_dim, dtype=getattr(encoder, "dtype", None))

    @classmethod
    def from_config(cls, config, **parts):
        """Reads `config.moco` and `config.contrastive`."""
        return cls(
            temperature=config.contrastive.temperature,
            projection_dim=config.model.projection_dim,
            **config.moco.to_dict(),
            **parts,
        )

    def init_state(self, params, statistics, key):
        """Key encoder equal to the query encoder; a queue of random unit vectors."""
        dtype = jax.tree.leaves(params)[0].dtype
        queue = jax.random.normal(key, (self.queue_size, self.projection_dim), dtype)
        return {
            "params": jax.tree.map(jnp.copy, params),
            "statistics": jax.tree.map(jnp.copy, statistics),
            "queue": unit_rows(queue),
            "pointer": jnp.zeros((), jnp.int32),
        }

    def loss(self, params, statistics, state, x, *, step, key, penalised):
        """MoCo's loss plus the penalty, for this device's share of the batch."""
        draw_key, shuffle_key, noise_key = jax.random.split(key, 3)
        draws, queue = self.draw(draw_key, x, penalised), state["queue"]
        query_params = jax.lax.stop_gradient(params)
        key_params = momentum_update(state["params"], query_params, self.momentum)
        keys, key_statistics = self._keys(
            key_params, state["statistics"], x, draws.second, shuffle_key, noise_key
        )
        (queries, z), (penalty, statistics) = map_chunks(
            lambda rows: self._queries(params, statistics, rows, noise_key),
            (x, draws),
            self.chunks,
        )
        local_keys = parallel.local_rows(keys, self.axis)
        contrast = contrastive.moco_loss(queries, local_keys, queue, self.temperature)
        total, terms = self.add_penalty("contrastive", contrast, penalty, step, penalised)
        bound = contrastive.mutual_information_bound(contrast, 1 + len(queue))
        terms["mutual_information_bound"] = bound
        terms |= collapse.measures(queries, local_keys, self.axis)
        queue, pointer = enqueue(queue, state["pointer"], keys)
        state = {
            "params": key_params,
            "statistics": key_statistics,
            "queue": queue,
            "pointer": pointer,
        }
        return total, Outcome(statistics, state, z, terms)

    def _queries(self, params, statistics, rows, key):
        x, draws = rows
        penalty, z, encoder = self.penalised_view(params, statistics, x, draws, key)
        queries, head = self.project(params, statistics, z, key)
        return (queries, z), (penalty, {"encoder": encoder, "head": head})

    def _keys(self, params, statistics, x, transformation, shuffle_key, noise_key):
        """Unit keys of the whole batch in its own order, and the key encoder's statistics."""
        total = len(x) * parallel.axis_size(self.axis)
        order = jnp.arange(total)
        if self.shuffle:
            order = jax.random.permutation(shuffle_key, total)
            x, transformation = _reorder((x, transformation), order, self.axis)

        def encode(rows):
            x, transformation = rows
            z, encoder = self.view(params, statistics, x, transformation, noise_key, self.second)
            keys, head = self.project(params, statistics, z, noise_key)
            return unit_rows(keys), {"encoder": encoder, "head": head}

        keys, statistics = map_chunks(encode, (x, transformation), self.chunks)
        keys = parallel.gather_rows(keys, self.axis)[jnp.argsort(order)]
        return jax.lax.stop_gradient(keys), statistics


def enqueue(
    queue: Float[Array, "k d"], pointer: Int[Array, ""], keys: Float[Array, "n d"]
) -> tuple[Float[Array, "k d"], Int[Array, ""]]:
    """Overwrites the oldest keys, `queue[pointer : pointer + n]`; n divides the queue's length."""
    queue = jax.lax.dynamic_update_slice_in_dim(queue, keys.astype(queue.dtype), pointer, axis=0)
    return queue, (pointer + len(keys)) % len(queue)


def _reorder(rows, order, axis):
    """This device's rows after the whole batch was put in `order`."""
    everything = jax.tree.map(lambda leaf: parallel.gather_rows(leaf, axis)[order], rows)
    return parallel.local_rows(everything, axis)
