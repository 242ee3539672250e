"""SimCLR (Chen et al., 2020): both views through one encoder, contrasted within the batch."""

import dataclasses
from typing import ClassVar

import jax

from invclr_jax import parallel
from invclr_jax.methods.base import Method, Outcome
from invclr_jax.methods.chunks import map_chunks
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
    defaults: ClassVar = {
        "contrastive.loss": ("info_nce", "nt_xent"),
        "contrastive.temperature": (0.5, 0.5),
        "optimizer.weight_decay": (1e-6, 1e-6),
        "batch_norm.scope": ("global", "groups"),  # theirs: eight GPUs, each on its own
        "batch_norm.groups": (1, 8),
        "num_epochs": (1000, 1000),
    }

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
        (p, q, z), (penalty, statistics) = map_chunks(
            lambda rows: self._project_views(params, statistics, rows, noise_key),
            (x, draws),
            self.chunks,
        )
        contrast = LOSSES[self.contrast](p, q, self.temperature, axis=self.axis)
        total, terms = self.add_penalty("contrastive", contrast, penalty, step, penalised)
        others = len(p) * parallel.axis_size(self.axis)
        candidates = others if self.contrast == "info_nce" else 2 * others - 1
        bound = contrastive.mutual_information_bound(contrast, candidates)
        terms["mutual_information_bound"] = bound
        return total, Outcome(statistics, {}, z, terms)

    def _project_views(self, params, statistics, rows, key):
        x, draws = rows
        # The second view comes first because penalties of pairs can reuse it.
        keys = jax.random.split(key, 4)
        z_prime, encoder = self.view(params, statistics, x, draws.second, keys[0])
        updated = statistics | {"encoder": encoder}
        penalty, z, encoder = self.penalised_view(params, updated, x, draws, keys[1], z_prime)
        p, head = self.project(params, statistics, z, keys[2])
        q, head = self.project(params, statistics | {"head": head}, z_prime, keys[3])
        return (p, q, z), (penalty, {"encoder": encoder, "head": head})
