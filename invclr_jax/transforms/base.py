"""The one abstraction, and what is made of it: import transforms' building blocks from here."""

from invclr_jax.transforms.compose import Compose, Product
from invclr_jax.transforms.distributions import (
    Box,
    LogOfUniform,
    LogUniform,
    Normal,
    TruncatedNormal,
)
from invclr_jax.transforms.independent import Distribution
from invclr_jax.transforms.protocol import NoPlainVersion, Transform, alpha_names, takes_images
from invclr_jax.transforms.shifting import component_shifts, shifts
from invclr_jax.transforms.wrappers import Sometimes, frozen

__all__ = [
    "Box",
    "Compose",
    "Distribution",
    "LogOfUniform",
    "LogUniform",
    "NoPlainVersion",
    "Normal",
    "Product",
    "Sometimes",
    "Transform",
    "TruncatedNormal",
    "alpha_names",
    "component_shifts",
    "frozen",
    "shifts",
    "takes_images",
]
