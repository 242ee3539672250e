"""What a compiled program depends on beside its run: this package, JAX, the machine."""

import functools
import hashlib
import os
import pathlib
import platform
import sys
from typing import Any

import flax
import jax
import jaxlib
import numpy as np
import optax

import invclr_jax
from invclr_jax.native.library import library, processor

_VARIABLES = ("XLA_", "LIBTPU_", "FLAX_", "TF_", "NVIDIA_")
"""Starts of the names of environment variables that compilers and libraries read."""


def surroundings() -> dict[str, Any]:
    """Everything of this process that may change a program, as plain JSON values."""
    libraries = (jax, jaxlib, flax, optax, np)
    device = jax.local_devices()[0]
    return {
        "sources": sources(pathlib.Path(invclr_jax.__file__).parent),
        "python": sys.version,
        "versions": {library.__name__: library.__version__ for library in libraries},
        "environment": {
            name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)
        },
        "jax": {name: repr(value) for name, value in jax.config.values.items() if _matters(name)},
        "devices": [device.platform, device.device_kind, jax.local_device_count()],
        "runtime": device.client.platform_version,
        "processor": [platform.machine(), sorted(processor()), _cores()],
        "kernels": library(),
    }


def _matters(option: str) -> bool:
    """Whether an option of JAX's may change a program: not where programs are kept."""
    return "cache" not in option


def _cores() -> int:
    """XLA divides work by the number of cores that the process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def sources(folder: pathlib.Path) -> str:
    """A hash of all source files and compiled libraries in a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for kind in ("*.py", "*.so") for path in folder.rglob(kind)):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
