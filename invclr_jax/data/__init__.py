"""x: where pictures come from. Arrays in memory; a batch is a pure function of (seed, step)."""

from invclr_jax.data.dataset import Dataset, Split
from invclr_jax.data.feed import make_feed
from invclr_jax.data.loading import NAMES, load, options_of
from invclr_jax.data.order import batch_indices, check_batch_size, steps_per_epoch
from invclr_jax.data.splits import fraction_indices, sample, validation_indices

__all__ = [
    "NAMES",
    "Dataset",
    "Split",
    "batch_indices",
    "check_batch_size",
    "fraction_indices",
    "load",
    "make_feed",
    "options_of",
    "sample",
    "steps_per_epoch",
    "validation_indices",
]
