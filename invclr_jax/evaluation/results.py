"""One JSON file of results a run: what was measured, how, and by which code."""

import functools
import json
import os
import pathlib
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

import jax
import ml_collections

import invclr_jax


@functools.cache  # a long process keeps running the code that it started with
def code_version() -> str:
    """The package's version, with the git commit where it runs from a checkout."""
    root = pathlib.Path(invclr_jax.__file__).resolve().parents[1]
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return invclr_jax.__version__
    return f"{invclr_jax.__version__}+{found.stdout.strip()}"


class Results:
    """The results of one checkpoint under one seed, kept in a JSON file.

    A protocol that is in the file with the same options is not computed again.

    Args:
      path: the file; made when the first result comes, replaced as a whole each time.
      config: configuration of the run.
      step: training step of the checkpoint.
      seed: of the evaluation's own randomness.
    """

    def __init__(
        self, path: pathlib.Path, *, config: ml_collections.ConfigDict, step: int, seed: int
    ):
        self._path = path
        self._record = {
            "step": step,
            "seed": seed,
            "code_version": code_version(),
            "jax_version": jax.__version__,
            "config": config.to_dict(),
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
                f"{self._path} is not a result file ({error}): move it away to start anew"
            ) from None
        return record

    def get_or_compute(
        self,
        protocol: str,
        options: Mapping[str, Any],
        compute: Callable[[], Mapping[str, float]],
    ) -> dict[str, float]:
        """The metrics of a protocol; computed and stored if they are not there yet."""
        options = json.loads(json.dumps(options))
        known = self._record["protocols"].get(protocol)
        if known is None or known["options"] != options:
            metrics = {name: float(value) for name, value in compute().items()}
            known = {"options": options, "code_version": code_version(), "metrics": metrics}
            self._record["protocols"][protocol] = known
            self._write()
        return known["metrics"]

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self._record, indent=1, sort_keys=True) + "\n")
        os.replace(temporary, self._path)


def _check_protocols(protocols: Any) -> None:
    """Raises TypeError or KeyError on anything but options and numbers for each protocol."""
    for name, known in dict.items(protocols):
        values = dict.values(known["metrics"])
        if not isinstance(known["options"], dict) or not all(type(v) is float for v in values):
            raise TypeError(f"{name} is without options or metrics")


def table(metrics: Mapping[str, float]) -> str:
    """Metrics as aligned lines."""
    width = max(map(len, metrics), default=0)
    return "\n".join(f"  {name:<{width}}  {value:.6g}" for name, value in metrics.items())
