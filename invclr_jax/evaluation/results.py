"""One JSON file of results for each run: what was measured, how, and with which code."""

import functools
import json
import pathlib
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

import jax

from invclr_jax.evaluation.outcomes import Metrics, Outcome, attempt
from invclr_jax.files import write_atomically
from invclr_jax.version import __version__

PROTOCOL_VERSION = 2
"""Raise it when a protocol changes what it measures: older results are then computed again."""


@functools.cache  # a long process keeps running the code that it started with
def code_version() -> str:
    """The package's version, with the git commit if it runs from a checkout."""
    root = pathlib.Path(__file__).resolve().parents[2]
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        described = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return __version__
    return f"{__version__}+{described.stdout.strip()}"


class Results:
    """The results of one checkpoint under one seed, kept in a JSON file.

    A protocol that is in the file is not computed again if its data, settings, weights, transform
    and `PROTOCOL_VERSION` are the same.

    Args:
      path: the file; created with the first result, replaced as a whole each time.
      config: configuration of the run.
      step: training step of the checkpoint.
      seed: of the evaluation's own randomness.
    """

    def __init__(self, path: pathlib.Path, *, config: Mapping[str, Any], step: int, seed: int):
        self._path = path
        self._record: dict[str, Any] = {
            "step": step,
            "seed": seed,
            "code_version": code_version(),
            "jax_version": jax.__version__,
            "config": config,
            "protocols": {},
        }
        if path.exists():
            self._record["protocols"] = self._read()["protocols"]

    def _read(self) -> dict[str, Any]:
        try:
            record = json.loads(self._path.read_text())
            _check_protocols(record["protocols"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self._path} is not a result file ({error}): move it elsewhere to start afresh"
            ) from None
        return record

    def _write(self) -> None:
        if jax.process_index() == 0:  # all processes of a job have the same numbers
            write_atomically(self._path, json.dumps(self._record, indent=1, sort_keys=True) + "\n")

    def get_or_attempt(
        self, protocol: str, fingerprint: Mapping[str, Any] | None, compute: Callable[[], Metrics]
    ) -> Outcome:
        """The metrics of a protocol; computed and stored if they are not there yet.

        Args:
          protocol: its name.
          fingerprint: what the metrics depend on; if None, they are always computed.
          compute: makes them.
        """
        options = json.loads(json.dumps({"version": PROTOCOL_VERSION, **(fingerprint or {})}))
        known = self._record["protocols"].get(protocol)
        if fingerprint is not None and known is not None and known["options"] == options:
            return Outcome("from the file", known["metrics"])
        outcome = attempt(lambda: {name: float(value) for name, value in compute().items()})
        if outcome.status == "measured":
            self._record["protocols"][protocol] = {
                "options": options,
                "code_version": code_version(),
                "metrics": outcome.metrics,
            }
            self._write()
        return outcome


def _check_protocols(protocols: Any) -> None:
    """Raises TypeError or KeyError on anything but options and numbers for each protocol."""
    for name, known in dict.items(protocols):
        values = dict.values(known["metrics"])
        if not isinstance(known["options"], dict) or not all(type(v) is float for v in values):
            raise TypeError(f"{name} has no options or metrics")
