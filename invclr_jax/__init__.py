"""Transformation invariance in contrastive representation learning (Foster et al., ICLR 2021).

One idea, `z = f(t(x, alpha, beta))`, and a folder for each part: `data` (x), `transforms` (t),
`models` (f), `objectives` (what training minimises), `training`, `evaluation`.
"""

from invclr_jax.cpu import avoid_slow_convolutions

avoid_slow_convolutions()

__version__ = "0.1.0"
