"""Methods in which one view predicts another: BYOL, SimSiam and MoCo v3.

A predictor maps the projection of each view to a target, which is the projection of the first or
the second view by a network that gets no gradient.
"""

import dataclasses
from collections.abc import Sequence

import flax.linen as nn
import jax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from invclr_jax import randomness
from invclr_jax.methods import collapse
from invclr_jax.methods.base import Method, Outcome
from invclr_jax.methods.chunks import map_chunks
from invclr_jax.methods.views import Batches, Draws, separate
from invclr_jax.models import network
from invclr_jax.models.heads import ProjectionHead

Targets = tuple[Float[Array, "n p"], Float[Array, "n p"]]
"""Of the first and of the second view."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Predicting(Method):
    """What they share. Subclasses give `targets` and `compare`.

    Attributes:
      predictor: projections to predicted projections.

    Options of a config:
      predictor_hidden: length of the predictor's hidden layer.
    """

    predictor: nn.Module

    @classmethod
    def default_predictor(cls, hidden: int, encoder: nn.Module) -> nn.Module:
        """Dense, batch norm, ReLU, dense with bias, back to the length of a projection.

        Args:
          hidden: width of the hidden layer.
          encoder: whose dtype and batch norm it shares.
        """
        dtype = getattr(encoder, "dtype", None)
        module = ProjectionHead(None, dtype, hidden=(hidden,), normalised=False, bias=True)
        return network.like(module, encoder)

    @property
    def modules(self):
        """Encoder, head and predictor."""
        return super().modules | {"predictor": self.predictor}

    def targets(
        self,
        params: PyTree,
        state: PyTree,
        x: Array,
        draws: Draws,
        projected: Sequence[Array],
        *,
        step: Array | int,
        key: PRNGKeyArray,
    ) -> tuple[Targets, PyTree]:
        """What is predicted, and the method's updated state.

        Args:
          params: of every module.
          state: what `init_state` made.
          x: what the transform takes, `[n, ...]`.
          draws: of `draw`.
          projected: projections of all views by the trained network.
          step: updates made so far.
          key: of dropout.
        """
        raise NotImplementedError

    def compare(self, predictions: Sequence[Array], targets: Targets) -> Float[Array, ""]:
        """The loss, from the predictions of all views."""
        raise NotImplementedError

    def loss(self, params, statistics, state, x, *, step, key, penalised):
        """The loss of the predictions plus the penalty, for this device's share of the batch."""
        draw_key, noise_key = jax.random.split(key)
        draws = self.draw(draw_key, x, penalised)
        (predicted, projected, z), (penalty, statistics) = map_chunks(
            lambda rows: self._predict(params, statistics, rows, noise_key),
            (x, draws),
            self.chunks,
        )
        views = separate(projected)
        target_key = randomness.stream(noise_key, "targets")
        targets, state = self.targets(params, state, x, draws, views, step=step, key=target_key)
        value = self.compare(separate(predicted), jax.lax.stop_gradient(targets))
        total, terms = self.add_penalty("objective", value, penalty, step, penalised)
        terms |= collapse.measures(views[0], views[1], self.axis)
        return total, Outcome(statistics, state, z, terms)

    def _predict(
        self, params: PyTree, statistics: PyTree, rows: tuple[Array, Draws], key: PRNGKeyArray
    ) -> tuple[tuple[Batches, Batches, Array], tuple[Array, PyTree]]:
        (projected, z), (penalty, updated) = self.project_views(params, statistics, rows, key)
        keys = jax.random.split(randomness.stream(key, "predictor"), len(projected))
        predicted, predictor = self.run("predictor", params, statistics, projected, tuple(keys))
        return (predicted, projected, z), (penalty, updated | {"predictor": predictor})
