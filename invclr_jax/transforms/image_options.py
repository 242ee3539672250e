"""What the options of `ImageTransform` have to satisfy."""

from typing import Any

import numpy as np

from invclr_jax.transforms import colour, geometry, warping
from invclr_jax.transforms.normalise import check_statistics

GROUPS = {"colour": colour.NAMES, "crop": geometry.NAMES, "affine": warping.NAMES}
"""What alpha may be made of, and the names of its components."""


def check_options(options: Any) -> None:
    """Raises ValueError unless the attributes of an `ImageTransform` make sense."""
    colour.check_variant(options.variant)
    for name, shape in (("size", options.shape), ("whole_size", options.whole_shape)):
        if len(shape) != 2 or min(shape) < 1:
            raise ValueError(
                f"{name} is {getattr(options, name)}: give a positive number of pixels, or two"
            )
    check_statistics(options.mean, options.std)
    if options.strength < 0:
        raise ValueError(
            f"strength is {options.strength}: use 0 for no jitter, 0.5 for the paper's"
        )
    if len(options.jitter_widths) != 4 or min(options.jitter_widths) < 0:
        raise ValueError(
            f"jitter_widths are {options.jitter_widths}: give four numbers of at least 0, for "
            f"({', '.join(colour.NAMES)})"
        )
    for name in ("jitter_probability", "grey_probability"):
        if not 0 <= getattr(options, name) <= 1:
            raise ValueError(f"{name} is {getattr(options, name)}: give a probability from 0 to 1")
    for name, largest in (("crop_scale", 1), ("crop_ratio", np.inf)):
        ends = getattr(options, name)
        if len(ends) != 2 or not 0 < ends[0] <= ends[1] <= largest:
            raise ValueError(
                f"{name} is {ends}: give the smallest and the largest, above 0, at most {largest}, "
                "in this order"
            )
    _check_groups(options)


def _check_groups(options: Any) -> None:
    groups = options.penalised
    if len(set(groups)) != len(groups) or not set(groups) <= set(GROUPS):
        raise ValueError(
            f"penalised is {groups}: name some of {', '.join(GROUPS)}, each at most once"
        )
    uses_colour = "colour" in groups or options.jitter_probability or options.grey_probability
    if len(options.mean) != 3 and uses_colour:
        raise ValueError(
            f"images have {len(options.mean)} channels, and jitter and grey need three: use "
            "jitter_probability=0, grey_probability=0 and a penalised without 'colour', such as "
            "('crop',)"
        )
