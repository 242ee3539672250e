"""How a protocol ended; one that fails does not stop the others."""

import dataclasses
from collections.abc import Callable
from typing import Literal

Metrics = dict[str, float]


class NotApplicableError(ValueError):
    """A protocol that makes no sense for this data."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a protocol.

    Attributes:
      status: `measured` now, or taken `from the file`; `not applicable` to this data; `failed`.
      metrics: the numbers; empty if there are none.
      reason: why there are none.
      error: what was raised, if it failed.
    """

    status: Literal["measured", "from the file", "not applicable", "failed"]
    metrics: Metrics = dataclasses.field(default_factory=dict)
    reason: str = ""
    error: Exception | None = None


def attempt(compute: Callable[[], Metrics]) -> Outcome:
    """Runs a protocol; whatever it raises becomes its outcome."""
    try:
        return Outcome("measured", compute())
    except NotApplicableError as reason:
        return Outcome("not applicable", reason=str(reason))
    except Exception as error:
        sentence = (
            str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        )
        return Outcome("failed", reason=sentence, error=error)
