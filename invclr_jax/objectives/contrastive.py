"""Contrastive losses on raw projections: InfoNCE (Eq. 3), NT-Xent and MoCo's, by cosine (Eq. 4)."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from invclr_jax.objectives.features import Scalar, unit_rows
from invclr_jax.parallel import Axis, device_index, gather_rows


def info_nce(
    p: Float[Array | np.ndarray, "n d"],
    q: Float[Array | np.ndarray, "n d"],
    temperature: Scalar,
    *,
    axis: Axis = None,
) -> Float[Array, ""]:
    """InfoNCE, Eq. 3: each anchor p_i finds its q_i among all K candidates q, itself included.

    Args:
      p: raw projections of the first view, the anchors, `[n, d]`.
      q: raw projections of the second view, the candidates, `[n, d]`.
      temperature: the divisor tau of the cosine similarity.
      axis: mapped axis whose devices hold the other candidates; gradients flow back to them.

    Returns:
      Mean over this device's anchors. The mean of it over devices is the whole batch's loss.
    """
    _check_projections(p, q, temperature)
    anchors, candidates = unit_rows(p), gather_rows(unit_rows(q), axis)
    return _cross_entropy(_cosines(anchors, candidates), temperature, _own_rows(len(p), axis))


def nt_xent(
    p: Float[Array | np.ndarray, "n d"],
    q: Float[Array | np.ndarray, "n d"],
    temperature: Scalar,
    *,
    axis: Axis = None,
) -> Float[Array, ""]:
    """NT-Xent: each of the 2K projections finds its partner among the 2K - 1 others.

    Args:
      p: raw projections of the first view, `[n, d]`.
      q: raw projections of the second view, `[n, d]`.
      temperature: the divisor tau of the cosine similarity.
      axis: mapped axis whose devices hold the other candidates; gradients flow back to them.

    Returns:
      Mean over this device's 2n anchors. The mean of it over devices is the whole batch's loss.
    """
    _check_projections(p, q, temperature)
    p, q = unit_rows(p), unit_rows(q)
    candidates = jnp.concatenate([gather_rows(p, axis), gather_rows(q, axis)])
    cosines = _cosines(jnp.concatenate([p, q]), candidates)
    in_p = _own_rows(len(p), axis)
    in_q = in_p + len(candidates) // 2
    itself = jnp.concatenate([in_p, in_q])[:, None] == jnp.arange(len(candidates))[None]
    others = jnp.where(itself, -jnp.inf, cosines)
    return _cross_entropy(others, temperature, jnp.concatenate([in_q, in_p]))


def moco_loss(
    queries: Float[Array | np.ndarray, "n d"],
    keys: Float[Array | np.ndarray, "n d"],
    queue: Float[Array | np.ndarray, "m d"],
    temperature: Scalar,
) -> Float[Array, ""]:
    """MoCo's loss: each query finds its key among the queue. The caller stops keys' gradients.

    Args:
      queries: raw projections of the query encoder, `[n, d]`.
      keys: projections of the key encoder for the same images, raw or of length 1, `[n, d]`.
      queue: keys of earlier batches, raw or of length 1, `[m, d]`; the same on every device.
      temperature: the divisor tau of the cosine similarity.

    Returns:
      Mean over this device's queries.
    """
    _check_projections(queries, keys, temperature)
    if queue.ndim != 2 or queue.shape[1] != queries.shape[1]:
        raise ValueError(
            f"the queue has shape {queue.shape}, but queries have {queries.shape[1]} components: "
            f"give a queue of shape [m, {queries.shape[1]}]"
        )
    queries = unit_rows(queries)
    own_key = jnp.sum(queries * unit_rows(keys), axis=-1, keepdims=True)
    cosines = jnp.concatenate([own_key, _cosines(queries, unit_rows(queue))], axis=1)
    return _cross_entropy(cosines, temperature, jnp.zeros(len(cosines), jnp.int32))


def mutual_information_bound(loss: Scalar, num_candidates: int) -> Float[Array, ""]:
    """The lower bound on I(x; z) in nats that an InfoNCE loss implies: log K - loss (appendix A).

    Args:
      loss: InfoNCE loss.
      num_candidates: K, the number of terms in its sum, the positive included (all devices').

    Returns:
      The bound, which cannot exceed log K.
    """
    return jnp.log(num_candidates) - jnp.asarray(loss)


def _cosines(anchors: Array, candidates: Array) -> Array:
    """All inner products `[n, m]`, in full precision: accelerators round products by default."""
    return jnp.matmul(anchors, candidates.T, precision=jax.lax.Precision.HIGHEST)


def _own_rows(n: int, axis: Axis) -> Array:
    """Where this device's n rows stand among the gathered rows."""
    return device_index(axis) * n + jnp.arange(n)


def _cross_entropy(cosines: Array, temperature: Scalar, targets: Array) -> Array:
    scores = cosines / jnp.asarray(temperature, cosines.dtype)
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(scores, targets))


def _check_projections(p, q, temperature):
    if p.ndim != 2 or p.shape != q.shape:
        raise ValueError(
            f"projections of shape {p.shape} and {q.shape} cannot be paired: "
            "both must be [n, d] with one row for each image"
        )
    if not isinstance(temperature, jax.core.Tracer) and not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}: the paper uses 0.5")
