"""Orbax: save, restore, `load_encoder`."""

from invclr_jax.checkpoint.encoder import Encoder
from invclr_jax.checkpoint.loading import load_encoder
from invclr_jax.checkpoint.store import Checkpoints, DamagedCheckpointError

__all__ = ["Checkpoints", "DamagedCheckpointError", "Encoder", "load_encoder"]
