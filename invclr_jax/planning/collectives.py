"""What a compiled program sends between devices, read from its text."""

import collections
import dataclasses
import math
import re

KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "collective-permute",
    "all-to-all",
    "collective-broadcast",
)
_BITS = {"pred": 8, "bf16": 16, "c64": 64, "c128": 128}
_OPERATION = re.compile(
    r"^\s*(?:ROOT )?%?\S+ = (?P<result>.+?) (?P<kind>" + "|".join(KINDS) + r")(?P<start>-start)?\("
    r"(?P<rest>.*)$",
    re.MULTILINE,
)
_ARRAY = re.compile(r"\b([a-z]+\d*[a-z0-9]*)\[([\d,]*)\]")
_CHAIN = re.compile(r'chain_id="(\d+)"')


@dataclasses.dataclass(frozen=True)
class Collective:
    """Operations of one kind.

    Attributes:
      kind: as XLA calls it.
      count: how many.
      bytes: of their results together, on one device. The result of a reduce-scatter is a part
        of what it sums; of all others it is what travels.
    """

    kind: str
    count: int
    bytes: int


def find(text: str) -> tuple[Collective, ...]:
    """The collectives of a compiled program, by kind.

    One inside a loop counts once. The TPU compiler writes an asynchronous one into everything that
    runs meanwhile; the number of its chain tells that it is the same.

    Args:
      text: of `compiled.as_text()`.
    """
    seen, sizes = set(), collections.defaultdict(list)
    for match in _OPERATION.finditer(text):
        chain = _CHAIN.search(match["rest"])
        identity = (match["kind"], f"chain {chain[1]}" if chain else match.start())
        if identity in seen:
            continue
        seen.add(identity)
        arrays = [_size(*array.groups()) for array in _ARRAY.finditer(match["result"])]
        # The result of a start is (operands, results, ...) except for all-reduce.
        halved = match["start"] and match["kind"] != "all-reduce"
        sizes[match["kind"]].append(max(arrays) if halved else sum(arrays))
    return tuple(Collective(kind, len(found), sum(found)) for kind, found in sorted(sizes.items()))


def _size(dtype: str, shape: str) -> int:
    bits = _BITS.get(dtype) or int(re.sub(r"\D", " ", dtype).split()[0])
    return math.prod(int(side) for side in shape.split(",") if side) * max(bits, 8) // 8


def sent(collective: Collective, devices: int) -> float:
    """Bytes that leave a device in rings, the usual way: each device sends to its neighbour."""
    others = (devices - 1) / devices
    factor = {
        "all-reduce": 2 * others,
        "reduce-scatter": devices - 1,
        "collective-permute": 1,
        "collective-broadcast": 1,
    }.get(collective.kind, others)
    return collective.bytes * factor
