"""The online probe: a linear model on z, trained beside the encoder without touching it."""

import dataclasses

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from invclr_jax import parallel
from invclr_jax.objectives.features import unit_rows


@dataclasses.dataclass(frozen=True)
class OnlineProbe:
    """Softmax regression of classes, or linear regression of numbers, on z/|z| by Adam.

    Attributes:
      num_outputs: classes, or numbers to regress.
      is_regression: whether labels are numbers.
      learning_rate: of Adam.
    """

    num_outputs: int
    is_regression: bool = False
    learning_rate: float = 0.1

    @property
    def _optimizer(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    def init(self, dim: int, dtype: jnp.dtype) -> PyTree:
        """Zero weights, bias, and momentum for representations of length `dim`."""
        params = {
            "weights": jnp.zeros((dim, self.num_outputs), dtype),
            "bias": jnp.zeros(self.num_outputs, dtype),
        }
        return {"params": params, "opt_state": self._optimizer.init(params)}

    def update(
        self, state: PyTree, z: Float[Array, "n d"], labels: Array, axis: parallel.Axis
    ) -> tuple[PyTree, dict[str, Array]]:
        """One step on detached, unit-length representations, and its metrics."""
        z = unit_rows(jax.lax.stop_gradient(z))
        grads, metrics = jax.grad(self._loss, has_aux=True)(state["params"], z, labels)
        grads = parallel.mean_over_devices(grads, axis)
        updates, opt_state = self._optimizer.update(grads, state["opt_state"])
        params = optax.apply_updates(state["params"], updates)
        return {"params": params, "opt_state": opt_state}, metrics

    def _loss(self, params, z, labels) -> tuple[Float[Array, ""], dict[str, Array]]:
        products = jnp.matmul(z, params["weights"], precision=jax.lax.Precision.HIGHEST)
        outputs = products + params["bias"][None]
        if self.is_regression:
            error = jnp.square(outputs - labels).mean()
            return error, {"online_probe/mse": error}
        loss = optax.softmax_cross_entropy_with_integer_labels(outputs, labels).mean()
        return loss, {"online_probe/accuracy": (outputs.argmax(1) == labels).mean(dtype=z.dtype)}
