"""SimCLR (Chen et al., 2020): all views through one encoder, contrasted within the batch."""

import dataclasses
import functools
from typing import ClassVar

import jax

from invclr_jax import parallel
from invclr_jax.methods import collapse
from invclr_jax.methods.base import Method, Outcome
from invclr_jax.methods.chunks import map_chunks
from invclr_jax.methods.views import mean_over_pairs, separate
from invclr_jax.models import network
from invclr_jax.models.heads import ProjectionHead
from invclr_jax.objectives import contrastive

LOSSES = {"info_nce": contrastive.info_nce, "nt_xent": contrastive.nt_xent}


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SimCLR(Method):
    """Eq. 13: a contrastive loss within the batch, and the penalty.

    Attributes:
      contrast: `info_nce` (Eq. 3) or `nt_xent` (the authors' code).
      temperature: the divisor tau of the cosine similarity.
    """

    contrast: str = "info_nce"
    temperature: float = 0.5

    losses: ClassVar = tuple(LOSSES)
    defaults: ClassVar = Method.defaults | {"contrastive.loss": ("info_nce", "nt_xent")}

    @classmethod
    def default_head(cls, encoder, output_dim):
        """The authors' head."""
        head = ProjectionHead(output_dim, dtype=getattr(encoder, "dtype", None))
        return network.like(head, encoder)

    @classmethod
    def from_config(cls, config, **parts):
        """Reads `config.contrastive`."""
        options = config.contrastive
        return cls(contrast=options.loss, temperature=options.temperature, **parts)

    def loss(self, params, statistics, state, x, *, step, key, penalised):
        """Eq. 13 for this device's share of the batch."""
        draw_key, noise_key = jax.random.split(key)
        draws = self.draw(draw_key, x, penalised)
        (projected, z), (penalty, statistics) = map_chunks(
            lambda rows: self.project_views(params, statistics, rows, noise_key),
            (x, draws),
            self.chunks,
        )
        views = separate(projected)
        compare = functools.partial(
            LOSSES[self.contrast], temperature=self.temperature, axis=self.axis
        )
        contrast = mean_over_pairs(compare, views)
        total, terms = self.add_penalty("contrastive", contrast, penalty, step, penalised)
        others = len(x) * parallel.axis_size(self.axis)
        candidates = others if self.contrast == "info_nce" else 2 * others - 1
        bound = contrastive.mutual_information_bound(contrast, candidates)
        terms["mutual_information_bound"] = bound
        terms |= collapse.measures(views[0], views[1], self.axis)
        return total, Outcome(statistics, {}, z, terms)
