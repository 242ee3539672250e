"""A small network as a probe: what the features hold, though not linearly."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from invclr_jax.data import validation_indices
from invclr_jax.evaluation.standardise import standardised

STEPS = 400
_OPTIMISER = optax.adamw(3e-3, weight_decay=1e-2)


class Perceptron(nn.Module):
    """One hidden layer.

    Attributes:
      outputs: numbers that it predicts.
      hidden: units of the layer.
    """

    outputs: int
    hidden: int = 128

    @nn.compact
    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n t"]:
        """The predictions."""
        x = nn.Dense(self.hidden)(x)
        return nn.Dense(self.outputs, kernel_init=nn.initializers.zeros)(nn.gelu(x))


def predict_by_mlp(
    features: Float[np.ndarray, "n d"],
    targets: Float[np.ndarray, "n t"],
    test_features: Float[np.ndarray, "m d"],
    *,
    seed: int = 0,
) -> Float[np.ndarray, "m t"]:
    """Predictions of a network of one hidden layer, fitted to standardised features.

    By AdamW on all rows at once; each target takes the step at which it was best on a
    held-out tenth of the rows.

    Args:
      features: of training rows.
      targets: of training rows.
      test_features: of rows to predict.
      seed: of the split and the initial weights.
    """
    fit, held_out = validation_indices(np.asarray(targets), 0.1, seed=seed)
    train, test = standardised(jnp.asarray(features), jnp.asarray(test_features), len(held_out))
    mean, std = targets[fit].mean(0, keepdims=True), targets[fit].std(0, keepdims=True)
    std = np.where(std > 0, std, 1)
    scaled = jnp.asarray((targets - mean) / std, train.dtype)
    predicted = _fit(
        jax.random.key(seed), (train[fit], scaled[fit]), (train[held_out], scaled[held_out]), test
    )
    return np.asarray(predicted) * std + mean


@jax.jit
def _fit(key, rows, held_out, test):
    """The test rows' predictions at the best step of each target, the constant 0 among them."""
    model = Perceptron(rows[1].shape[1])
    params = model.init(key, rows[0])

    def loss(params):
        return jnp.mean((model.apply(params, rows[0]) - rows[1]) ** 2)

    def step(carry, _):
        params, state, best, predicted = carry
        error = jnp.mean((model.apply(params, held_out[0]) - held_out[1]) ** 2, axis=0)
        better = error < best
        now = jnp.asarray(model.apply(params, test))
        predicted = jnp.where(better[None], now, predicted)
        updates, state = _OPTIMISER.update(jax.grad(loss)(params), state, params)
        return (optax.apply_updates(params, updates), state, jnp.minimum(best, error), predicted), 0

    first = jnp.mean(held_out[1] ** 2, axis=0)
    start = (params, _OPTIMISER.init(params), first, jnp.zeros((len(test), rows[1].shape[1])))
    return jax.lax.scan(step, start, None, STEPS)[0][3]
