"""Configurations that were written before."""

import pathlib
from collections.abc import Mapping
from typing import Any

import ml_collections

from invclr_jax.checkpoint.stored import as_config
from invclr_jax.config.keys import default_config
from invclr_jax.config.values import fill, flatten, read_json

RETIRED = ("penalty.canonical",)
"""Keys that are no more; they are passed over where they say nothing."""


def from_dict(values: Mapping[str, Any]) -> ml_collections.ConfigDict:
    """Rebuilds a configuration; keys that the project does not know are refused."""
    flat = flatten(values)
    values = {key: flat[key] for key in flat if key not in RETIRED or flat[key]}
    return fill(default_config(), values)


def read(path: str | pathlib.Path) -> ml_collections.ConfigDict:
    """Reads the configuration of a run, also of one from before 0.2."""
    values = read_json(path)
    try:
        values = {"views": {"number": 2}} | as_config(values).to_dict()  # all runs before 0.3
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not the config of a run: {error}") from None
    return from_dict(values)
