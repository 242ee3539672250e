"""The online probe: a linear model on z, trained beside the encoder without touching it."""

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from invclr_jax import parallel
from invclr_jax.training.state import Learner


def init(learner: Learner, num_outputs: int, dtype) -> PyTree:
    """Zero weights, bias, and momentum."""
    dim = learner.encoder.representation_dim
    params = {
        "weights": jnp.zeros((dim, num_outputs), dtype),
        "bias": jnp.zeros(num_outputs, dtype),
    }
    return {"params": params, "opt_state": _optimizer(learner).init(params)}


def _optimizer(learner):
    return optax.adam(learner.config.online_probe.learning_rate)


def _loss(params, z, labels, num_classes) -> tuple[Float[Array, ""], dict[str, Array]]:
    outputs = z @ params["weights"] + params["bias"][None]
    if num_classes is None:
        error = jnp.square(outputs - labels).mean()
        return error, {"online_probe/mse": error}
    loss = optax.softmax_cross_entropy_with_integer_labels(outputs, labels).mean()
    return loss, {"online_probe/accuracy": (outputs.argmax(1) == labels).mean(dtype=z.dtype)}


def update(learner: Learner, probe: PyTree, z: Array, labels: Array) -> tuple[PyTree, dict]:
    """One step of the probe on detached, unit-length representations, and its metrics."""
    z = jax.lax.stop_gradient(z)
    z = z / (jnp.linalg.norm(z, axis=1, keepdims=True) + 1e-12)
    grad = jax.grad(_loss, has_aux=True)
    grads, metrics = grad(probe["params"], z, labels, learner.num_classes)
    grads = parallel.mean_over_devices(grads, learner.axis)
    updates, opt_state = _optimizer(learner).update(grads, probe["opt_state"])
    return {
        "params": optax.apply_updates(probe["params"], updates),
        "opt_state": opt_state,
    }, metrics
