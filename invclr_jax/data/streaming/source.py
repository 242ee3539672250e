"""Where encoded pictures come from: anything with random access to them."""

import hashlib
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from invclr_jax.data.decoding import Encoded


@runtime_checkable
class Source(Protocol):
    """Encoded pictures by number. It is sent to worker processes, so it must be picklable.

    Your own source needs these three methods. One that is read in blocks, such as row groups
    of parquet, also has `blocks`, the number of pictures in each: an epoch then takes neighbouring
    pictures at about the same time.
    """

    def __len__(self) -> int:
        """How many there are."""
        ...

    def __getitem__(self, row: int) -> Encoded:
        """A file, or its contents."""
        ...

    def name(self, row: int) -> str:
        """What to call it in a message."""
        ...


def blocks_of(source: Source) -> Sequence[int] | None:
    """Pictures in each block of a source; None if any order is as good as another."""
    return getattr(source, "blocks", None)


def fingerprint(source: Source) -> str:
    """A checksum of the names of all pictures; their contents are not read."""
    digest = hashlib.sha256(str(len(source)).encode())
    for row in range(len(source)):
        digest.update(source.name(row).encode() + b"\0")
    return digest.hexdigest()[:16]
