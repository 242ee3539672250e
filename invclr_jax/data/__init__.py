"""x: where pictures come from. Arrays in memory, or streams that do not fit in it.

In both cases a batch is a pure function of (seed, step).
"""

from invclr_jax.data.dataset import Dataset, Split
from invclr_jax.data.feed import make_feed
from invclr_jax.data.loading import NAMES, load, options_of
from invclr_jax.data.order import batch_indices, check_batch_size, steps_per_epoch
from invclr_jax.data.splits import fraction_indices, sample, validation_indices
from invclr_jax.data.streaming.pictures import Pictures

__all__ = [
    "NAMES",
    "Dataset",
    "Pictures",
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
