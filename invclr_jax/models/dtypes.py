"""Which arithmetic is done in which precision, and what has a shape."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

Shaped = jax.ShapeDtypeStruct | Array
"""Anything with a shape and a dtype."""

DTYPES = ("float32", "bfloat16", "float64")

PRECISIONS = ("default", "high", "highest")
"""Of products of float32 numbers. TPUs multiply them as one, three or six products of bfloat16
numbers; NVIDIA's GPUs since Ampere round them to TF32 unless it is `highest`; CPUs do not round."""


def lax_precision(name: str) -> jax.lax.Precision | None:
    """What JAX's operations take for a `model.precision`; None follows JAX's own setting."""
    if name not in PRECISIONS:
        raise ValueError(f"precision {name!r} is unknown: use one of {', '.join(PRECISIONS)}")
    return None if name == "default" else jax.lax.Precision[name.upper()]


def at_least_float32(dtype: Any) -> jnp.dtype:
    """The dtype of parameters and statistics where the arithmetic is in `dtype` (None: float32)."""
    return jnp.promote_types(jnp.float32 if dtype is None else dtype, jnp.float32)


def parse(name: str) -> jnp.dtype:
    """The dtype that a config names."""
    if name not in DTYPES:
        raise ValueError(f"model dtype {name!r} is unknown: use one of {', '.join(DTYPES)}")
    if jax.dtypes.canonicalize_dtype(name) != jnp.dtype(name):
        raise ValueError("model dtype float64 needs JAX_ENABLE_X64=1 in the environment")
    return jnp.dtype(name)
