"""Contrastive methods. Each is a module with two functions, so that a third is easy:

`init(learner, params, batch_stats, key) -> method state` and
`loss(params, state, x, key, learner, penalised) -> (loss, Outcome)`.
"""

from invclr_jax.training.methods import moco, simclr

METHODS = {"simclr": simclr, "moco": moco}
