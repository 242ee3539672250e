"""Methods whose loss is a function of all projections: Barlow Twins, VICReg, EMP-SSL."""

import dataclasses
from collections.abc import Sequence

import jax
from jaxtyping import Array, Float

from invclr_jax.methods import collapse
from invclr_jax.methods.base import Method, Outcome
from invclr_jax.methods.chunks import map_chunks
from invclr_jax.methods.views import separate
from invclr_jax.models import network
from invclr_jax.models.heads import ProjectionHead


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Joint(Method):
    """One network for all views. Subclasses give `compare`."""

    @classmethod
    def default_head(cls, encoder, output_dim):
        """Dense 2048, batch norm and ReLU twice, then a dense layer."""
        dtype = getattr(encoder, "dtype", None)
        head = ProjectionHead(output_dim, dtype, hidden=(2048, 2048), normalised=False)
        return network.like(head, encoder)

    @classmethod
    def from_config(cls, config, **parts):
        """Reads the method's section of the config."""
        return cls(**cls.section(config) | parts)

    def compare(self, views: Sequence[Array]) -> Float[Array, ""]:
        """The loss, from the projections `[n, p]` of every view."""
        raise NotImplementedError

    def loss(self, params, statistics, state, x, *, step, key, penalised):
        """The loss of the projections plus the penalty, for this device's share of the batch."""
        draw_key, noise_key = jax.random.split(key)
        draws = self.draw(draw_key, x, penalised)
        (projected, z), (penalty, statistics) = map_chunks(
            lambda rows: self.project_views(params, statistics, rows, noise_key),
            (x, draws),
            self.chunks,
        )
        views = separate(projected)
        value = self.compare(views)
        total, terms = self.add_penalty("objective", value, penalty, step, penalised)
        terms |= collapse.measures(views[0], views[1], self.axis)
        return total, Outcome(statistics, {}, z, terms)
