"""Memory that the process keeps for its next step."""

import ctypes

_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # of glibc's malloc.h


def keep_freed_memory() -> bool:
    """Tells glibc not to give freed memory back to the system.

    On CPUs XLA asks for a step's memory anew each time. Large pieces would come from the system
    and go back to it, page by page, which takes a tenth of a step. Call it before the first array
    is made: memory that threads have taken in pools of their own is not reused by others.

    Returns:
      Whether the C library is one that can be told.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return all(
        mallopt(*option) for option in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_ARENA_MAX, 1))
    )
