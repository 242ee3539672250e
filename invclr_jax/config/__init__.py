"""The configuration: every key, the checks, and how objects are made from it.

A config is one way to make a run's objects, nothing more: `from_config` reads it and calls the
constructors that anybody can call.
"""

from invclr_jax.config.build import describe, from_config, load_data
from invclr_jax.config.keys import FIDELITY, default_config, resolve
from invclr_jax.config.named import load, names
from invclr_jax.config.programs import dependencies
from invclr_jax.config.stored import from_dict, read
from invclr_jax.config.values import differences, flatten, nearest, to_json

__all__ = [
    "FIDELITY",
    "default_config",
    "dependencies",
    "describe",
    "differences",
    "flatten",
    "from_config",
    "from_dict",
    "load",
    "load_data",
    "names",
    "nearest",
    "read",
    "resolve",
    "to_json",
]
