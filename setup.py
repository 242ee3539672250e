"""Compiles `invclr_jax/native` where there is a C++ compiler; all else is in setup.cfg.

Without one, or with `INVCLR_PURE=1` in the environment, the installation succeeds all the same, and
all that CPUs compute is XLA's.
"""

import importlib.util
import os
import pathlib
import platform
import sys

from setuptools import Extension, setup

LEVELS = {
    "avx2": ["-march=x86-64-v3"],
    "avx512": ["-march=x86-64-v4"],
    "avx512_bf16": ["-march=x86-64-v4", "-mavx512bf16"],
}
"""One library for each; `invclr_jax.native.library` takes the one that suits the processor."""


def extensions() -> list[Extension]:
    """The libraries to compile; none where we have not tried it."""
    if os.environ.get("INVCLR_PURE"):
        return []
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return []
    jaxlib = importlib.util.find_spec("jaxlib")  # pyproject.toml asks for it
    if jaxlib is None or jaxlib.origin is None:
        return []
    folder = pathlib.Path("invclr_jax/native")
    return [
        Extension(
            f"invclr_jax.native.kernels_{name}",
            [str(source) for source in sorted(folder.glob("*.cc"))],
            depends=[str(header) for header in sorted(folder.glob("*.h"))],
            extra_compile_args=[
                *("-std=c++17", "-O3", *level, "-mprefer-vector-width=512"),
                "-fno-trapping-math",  # or comparisons would be branches, and loops not vectors
                *("-isystem", str(pathlib.Path(jaxlib.origin).parent / "include")),
            ],
            language="c++",
            optional=True,
        )
        for name, level in LEVELS.items()
    ]


setup(ext_modules=extensions())
