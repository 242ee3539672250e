"""The configuration in a checkpoint: plain values from which objects are made again.

A checkpoint is data. What it names is looked up in this package's registries, or imported where the
caller trusts it (`importing`); nothing in it is ever executed otherwise.
"""

from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import ml_collections
from jaxtyping import PyTree

from invclr_jax import importing
from invclr_jax.models import network
from invclr_jax.models.build import build_encoder
from invclr_jax.transforms.base import Transform
from invclr_jax.transforms.build import build_transform


def as_config(values: Mapping[str, Any]) -> ml_collections.ConfigDict:
    """The stored configuration; runs from before 0.2 get the keys that they lack."""
    config = ml_collections.ConfigDict(dict(values))
    for section in ("model", "transform", "data"):
        if not isinstance(config.get(section), ml_collections.ConfigDict):
            raise ValueError(f"it has no section {section!r}")
    if config.transform.get("name") is None:
        # Before 0.2 the data decided.
        renders = config.data.get("name") == "spirograph"
        config.transform.name = "spirograph" if renders else "image"
    if config.transform.get("channels") is None:
        config.transform.channels = 3
    if "batch_norm" in config and config.batch_norm.get("running_variance") is None:
        config.batch_norm.running_variance = "biased"
    return config


def encoder_of(config: ml_collections.ConfigDict, trust: importing.Trust) -> nn.Module:
    """The encoder's module."""
    return build_encoder(config.model, image_size=config.transform.size, trust=trust)


def transform_of(config: ml_collections.ConfigDict, trust: importing.Trust) -> Transform:
    """The transformation that the encoder was trained with."""
    return build_transform(config.transform, trust=trust)


def variables_of(module: nn.Module, config: ml_collections.ConfigDict) -> PyTree:
    """Shapes of the encoder's variables, without computing any."""
    size = config.transform.size
    dtype = jnp.float64 if config.model.get("dtype") == "float64" else jnp.float32
    images = jnp.zeros((2, size, size, config.transform.channels), dtype)
    params, statistics, _ = jax.eval_shape(lambda: network.init(module, jax.random.key(0), images))
    return {"params": params, **statistics}
