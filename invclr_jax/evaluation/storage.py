"""Arrays of features on the host: in memory, or in a file if they are large."""

import math
import tempfile

import numpy as np
from numpy.typing import DTypeLike

MEMORY = 4 * 2**30
"""Default limit, in bytes, on an array that is kept in memory."""


def empty(shape: tuple[int, ...], dtype: DTypeLike, memory: int = MEMORY) -> np.ndarray:
    """An array to fill; a large one is mapped to a file that vanishes with it.

    The file is in the folder for temporary files (TMPDIR), where it has no name: nothing is left
    behind if the process is killed. The system keeps in memory what is used of it, as long as
    there is room.

    Args:
      shape: of the array.
      dtype: of its entries.
      memory: bytes beyond which it is mapped.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size <= memory:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        return np.memmap(file, dtype, "r+", shape=shape)
