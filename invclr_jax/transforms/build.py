"""The transformation that a configuration describes."""

import ml_collections

from invclr_jax.transforms.base import Transform
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.spirograph import SpirographTransform


def build_transform(config: ml_collections.ConfigDict) -> Transform:
    """Spirograph's renderer for `data.name == "spirograph"`, else crop, flip, jitter, grey.

    Args:
      config: resolved configuration whose `transform.size`, `mean` and `std` are known.
    """
    options = config.transform
    if config.data.name == "spirograph":
        return SpirographTransform(size=options.size, normalise=options.normalise)
    return ImageTransform(
        size=options.size,
        mean=tuple(options.mean),
        std=tuple(options.std),
        strength=options.strength,
        variant=options.variant,
        jitter_probability=options.jitter_probability,
        grey_probability=options.grey_probability,
    )
