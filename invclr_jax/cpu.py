"""Process settings for fast XLA on CPUs. Commands apply them; importing the package does not."""

import ctypes
import importlib.util
import os

_LIBRARIES = "--xla_cpu_experimental_ynn_fusion_type"
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # of glibc's malloc.h


def keep_freed_memory() -> bool:
    """Makes glibc keep freed memory instead of returning it to the system.

    On CPUs XLA asks for a step's memory anew each time. Large pieces would come from the system
    and go back to it, page by page, which takes a tenth of a step. Call it before the first array
    is made: memory that threads have taken in pools of their own is not reused by others.

    Returns:
      True if the C library supports `mallopt`.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return all(
        mallopt(*option) for option in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_ARENA_MAX, 1))
    )


def avoid_slow_convolutions() -> None:
    """Makes XLA convolve by Eigen rather than by YNNPACK, which takes longer for gradients.

    The gradient of a 3×3 kernel on 64 images of 32×32×64 takes 36 ms instead of 128, a convolution
    18 ms instead of 32 (two cores). A choice that `XLA_FLAGS` holds already is left alone, and so
    are machines with TPUs, whose library reads the variable too and may not know the flag. XLA
    reads it once: call this before JAX compiles anything.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if _LIBRARIES not in flags and importlib.util.find_spec("libtpu") is None:
        os.environ["XLA_FLAGS"] = f"{flags} {_LIBRARIES}=".strip()


def prepare() -> None:
    """Applies both; what every command does first."""
    keep_freed_memory()
    avoid_slow_convolutions()
