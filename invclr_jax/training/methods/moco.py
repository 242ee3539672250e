"""MoCo v2 (He et al., 2020; Chen et al., 2020b): a momentum encoder and a queue of its keys.

Batch norm lets an encoder recognise the batch that a key comes from. MoCo's remedy is to encode the
keys in another order, so that a query and its key are normalised with different companions. Here
the batch falls into batch-norm groups (`batch_norm.groups`) whatever the number of devices, so the
remedy works on a single one too.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from invclr_jax import parallel
from invclr_jax.objectives import contrastive
from invclr_jax.objectives.features import unit_rows
from invclr_jax.training import views
from invclr_jax.training.state import Learner, TrainState


def init(learner: Learner, params: PyTree, batch_stats: PyTree, key: PRNGKeyArray) -> PyTree:
    """Key encoder equal to the query encoder; a queue of random unit vectors."""
    shape = (learner.config.moco.queue_size, learner.config.model.projection_dim)
    dtype = jax.tree.leaves(params)[0].dtype
    queue = jax.random.normal(key, shape, dtype)
    return {
        "params": jax.tree.map(jnp.copy, params),
        "batch_stats": jax.tree.map(jnp.copy, batch_stats),
        "queue": unit_rows(queue),
        "pointer": jnp.zeros((), jnp.int32),
    }


def momentum_update(key_params: PyTree, params: PyTree, momentum: float) -> PyTree:
    """key ← m·key + (1-m)·query."""
    return jax.tree.map(
        lambda key, query: momentum * key + (1 - momentum) * query, key_params, params
    )


def enqueue(
    queue: Float[Array, "k d"], pointer: Int[Array, ""], keys: Float[Array, "n d"]
) -> tuple[Float[Array, "k d"], Int[Array, ""]]:
    """Overwrites the oldest keys, `queue[pointer : pointer + n]`; n divides the queue's length."""
    queue = jax.lax.dynamic_update_slice_in_dim(queue, keys.astype(queue.dtype), pointer, axis=0)
    return queue, (pointer + len(keys)) % len(queue)


def loss(
    params: PyTree,
    state: TrainState,
    x: Array,
    key: PRNGKeyArray,
    learner: Learner,
    penalised: bool,
) -> tuple[Float[Array, ""], views.Outcome]:
    """MoCo's loss plus the penalty on the query encoder, for this device's share of the batch."""
    config, queue = learner.config, state.method["queue"]
    draw_key, shuffle_key = jax.random.split(key)
    draws = views.draw(learner, draw_key, len(x), penalised)
    query_params = jax.lax.stop_gradient(params)
    key_params = momentum_update(state.method["params"], query_params, config.moco.momentum)
    keys, key_stats = _keys(learner, key_params, state.method, x, draws.second, shuffle_key)
    (queries, z), (penalty, batch_stats) = views.map_chunks(
        lambda rows: _queries(learner, params, state.batch_stats, *rows), (x, draws), config.chunks
    )
    local_keys = parallel.local_rows(keys, learner.axis)
    contrast = contrastive.moco_loss(queries, local_keys, queue, config.contrastive.temperature)
    total, terms = views.add_penalty(learner, state.step, contrast, penalty, penalised)
    queue, pointer = enqueue(queue, state.method["pointer"], keys)
    method = {
        "params": key_params,
        "batch_stats": key_stats,
        "queue": queue,
        "pointer": pointer,
    }
    bound = contrastive.mutual_information_bound(contrast, 1 + len(queue))
    terms["mutual_information_bound"] = bound
    return total, views.Outcome(batch_stats, method, z, terms)


def _queries(learner, params, batch_stats, x, draws):
    penalty, z, stats = views.penalised_view(learner, params, batch_stats, x, draws)
    queries, head = learner.project(params, batch_stats, z)
    return (queries, z), (penalty, {"encoder": stats, "head": head})


def _keys(learner, key_params, method, x, transformation, shuffle_key):
    """Unit keys of the whole batch in its own order, and the key encoder's statistics."""
    total = len(x) * parallel.axis_size(learner.axis)
    order = jnp.arange(total)
    if learner.config.moco.shuffle:
        order = jax.random.permutation(shuffle_key, total)
        x, transformation = _reorder((x, transformation), order, learner.axis)

    def encode(rows):
        z, encoder = views.view(learner, key_params, method["batch_stats"], *rows)
        keys, head = learner.project(key_params, method["batch_stats"], z)
        return unit_rows(keys), {"encoder": encoder, "head": head}

    keys, stats = views.map_chunks(encode, (x, transformation), learner.config.chunks)
    keys = parallel.gather_rows(keys, learner.axis)[jnp.argsort(order)]
    return jax.lax.stop_gradient(keys), stats


def _reorder(rows, order, axis):
    """This device's rows after the whole batch was put in `order`."""
    everything = jax.tree.map(lambda leaf: parallel.gather_rows(leaf, axis)[order], rows)
    return parallel.local_rows(everything, axis)
