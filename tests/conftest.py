"""Eight virtual CPU devices, strict JAX, golden numbers, and shared fixtures."""

import gc
import os
import pathlib
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Most of the tests' time is compilation of programs that run once.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "")
    + " --xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
    + " --xla_llvm_disable_expensive_passes=true"
)

import jax
import jaxtyping
import numpy as np
import pytest

GOLDEN = pathlib.Path(__file__).parent / "golden"

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_default_matmul_precision", "highest")
jax.config.update(
    "jax_compilation_cache_dir",
    os.environ.get("JAX_COMPILATION_CACHE_DIR")
    or os.path.join(tempfile.gettempdir(), "invclr_jax_test_cache"),
)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)


@pytest.fixture(scope="session")
def golden():
    """`golden("colour")["images"]`: the reference numbers described in tests/golden/README.md."""
    files = {}

    def load(name):
        if name not in files:
            with np.load(GOLDEN / f"{name}.npz", allow_pickle=False) as stored:
                files[name] = {key: stored[key] for key in stored.files}
        return files[name]

    return load


MOST_MAPS = 25_000
"""Memory maps of a process after which it forgets compiled programs: Linux allows 65,530."""


@pytest.fixture(autouse=True)
def few_programs():
    """A process that compiles thousands of programs would run out of memory maps and crash."""
    yield
    maps = pathlib.Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def x64():
    """Runs the test in float64."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(params=["float64", "float32"])
def precision(request):
    """Runs the test in both precisions; the value is the NumPy dtype."""
    with jax.enable_x64(request.param == "float64"):
        yield np.dtype(request.param)


@pytest.fixture
def no_shape_checks():
    """Switches jaxtyping's checks off, to see the error that a user without them sees."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
