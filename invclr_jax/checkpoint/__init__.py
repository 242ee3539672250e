"""Orbax: save, restore, `load_encoder`."""

from invclr_jax.checkpoint.encoder import Encoder, compiled, encoder_template, load_encoder
from invclr_jax.checkpoint.store import Checkpoints, DamagedCheckpointError

__all__ = [
    "Checkpoints",
    "DamagedCheckpointError",
    "Encoder",
    "compiled",
    "encoder_template",
    "load_encoder",
]
