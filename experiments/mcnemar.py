"""McNemar's test: do two classifiers differ on the same test rows by more than chance?

Only rows that one of them gets right and the other wrong say anything. Which rows a probe gets
right is kept as a string of bits, so that runs can be compared later.
"""

from collections.abc import Mapping

import numpy as np
import scipy.stats

from experiments.tables import Cell, Table


def pack(right: np.ndarray) -> str:
    """Which rows are right, `[n]` booleans, as `n:` and hexadecimal bits."""
    return f"{len(right)}:{np.packbits(right).tobytes().hex()}"


def unpack(text: str) -> np.ndarray:
    """What `pack` packed."""
    count, _, bits = text.partition(":")
    return np.unpackbits(np.frombuffer(bytes.fromhex(bits), np.uint8), count=int(count)).astype(
        bool
    )


def compare(one: np.ndarray, other: np.ndarray) -> tuple[int, int, float]:
    """Rows that only the one gets right, rows that only the other does, and the p-value.

    Exact and two-sided: under no difference each such row is a fair coin.

    Args:
      one: which rows it gets right, `[n]`.
      other: likewise.
    """
    if one.shape != other.shape:
        raise ValueError(f"one has {len(one)} rows, the other {len(other)}: use the same test rows")
    gained, lost = int(np.sum(one & ~other)), int(np.sum(other & ~one))
    if gained + lost == 0:
        return 0, 0, 1.0
    return gained, lost, float(scipy.stats.binomtest(gained, gained + lost).pvalue)


def table(packed: Mapping[str, str], reference: str = "none") -> Table:
    """Every run against the reference of its seed.

    Args:
      packed: what `pack` gave, by `run/seed`.
      reference: the run to compare with.
    """
    rows: list[list[Cell]] = []
    for key in sorted(packed):
        name, _, seed = key.rpartition("/")
        base = packed.get(f"{reference}/{seed}")
        if name != reference and base is not None:
            gained, lost, p = compare(unpack(packed[key]), unpack(base))
            rows.append([name, seed, f"+{gained} −{lost}", f"{p:.2g}"])
    return Table(
        f"Test rows gained and lost against {reference}", ["run", "seed", "rows", "p"], rows
    )
