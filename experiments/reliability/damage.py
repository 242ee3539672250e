"""Checkpoints with missing, truncated, changed and swapped files."""

import contextlib
import functools
import json
import pathlib
import shutil
from collections.abc import Callable, Iterator

import jax
import numpy as np

from invclr_jax import config as configuration
from invclr_jax.checkpoint import Checkpoints, DamagedCheckpointError

Change = Callable[[pathlib.Path], None]


def damage(folder: pathlib.Path, seed: int = 0) -> dict:
    """Damages one checkpoint of two in every way, each time on a fresh copy, and reads it.

    It must be refused by a `DamagedCheckpointError`, or give the arrays and the configuration that
    were saved: some files are not needed for reading.
    """
    original = folder / "original"
    with contextlib.closing(Checkpoints(original, keep=2)) as checkpoints:
        for step in (1, 2):
            checkpoints.save(step, **_state(step), config=json.loads(_CONFIG))
    outcomes = {"refused": 0, "intact": 0, "lost": 0}
    failures = []
    for name, change in _changes(original / "checkpoints" / "2", np.random.default_rng(seed)):
        shutil.rmtree(folder / "copy", ignore_errors=True)
        shutil.copytree(original, folder / "copy")
        change(folder / "copy" / "checkpoints" / "2")
        outcome = _read(folder / "copy")
        outcomes[outcome] += 1
        if outcome == "lost":
            failures.append(name)
    tried = sum(outcomes.values())
    return {"tried": tried, "survived": tried - outcomes["lost"], **outcomes, "failures": failures}


_CONFIG = configuration.to_json(configuration.default_config())


def _state(step: int) -> dict:
    """Arrays that show which step they belong to."""
    rng = np.random.default_rng(step)

    def arrays():
        return {
            "w": rng.random((30, 20)).astype(np.float32),
            "b": rng.random(3).astype(np.float32),
        }

    return {"encoder": arrays(), "training": {"step": np.int32(step), "opt_state": arrays()}}


def _read(workdir: pathlib.Path) -> str:
    expected = _state(2)
    try:
        with contextlib.closing(Checkpoints(workdir)) as checkpoints:
            found, config = checkpoints.restore(2, expected), checkpoints.config(2)
    except DamagedCheckpointError:
        return "refused"
    except Exception:
        return "lost"
    same = jax.tree.map(np.array_equal, found, expected)
    intact = jax.tree.all(same) and config == json.loads(_CONFIG)
    return "intact" if intact else "lost"


def _changes(checkpoint: pathlib.Path, rng: np.random.Generator) -> Iterator[tuple[str, Change]]:
    """Names of damages, and what does them to a copy of the checkpoint."""
    files = sorted(p.relative_to(checkpoint) for p in checkpoint.rglob("*") if p.is_file())
    for file in files:
        size = (checkpoint / file).stat().st_size
        at, bit = (int(rng.integers(size)) if size else 0), int(rng.integers(8))
        yield f"{file} missing", functools.partial(_remove, file)
        yield f"{file} cut in half", functools.partial(_cut, file, size // 2)
        yield f"{file} empty", functools.partial(_cut, file, 0)
        yield f"{file} with bit {bit} of byte {at} flipped", functools.partial(_flip, file, at, bit)
        for other in files:
            if other > file and other.parent == file.parent:
                yield f"{file} and {other} swapped", functools.partial(_swap, file, other)
    for folder in ("encoder", "training", "config", "checksums"):
        yield f"{folder} of another step", functools.partial(_swap, folder, f"../1/{folder}")
    yield "encoder and training swapped", functools.partial(_swap, "encoder", "training")
    yield "checkpoints renamed", functools.partial(_swap, ".", "../1")


def _remove(file, checkpoint: pathlib.Path) -> None:
    (checkpoint / file).unlink()


def _cut(file, size: int, checkpoint: pathlib.Path) -> None:
    (checkpoint / file).write_bytes((checkpoint / file).read_bytes()[:size])


def _flip(file, at: int, bit: int, checkpoint: pathlib.Path) -> None:
    raw = bytearray((checkpoint / file).read_bytes())
    if raw:
        raw[at] ^= 1 << bit
    (checkpoint / file).write_bytes(raw)


def _swap(one, other, checkpoint: pathlib.Path) -> None:
    aside = checkpoint.parent / "aside"
    (checkpoint / one).rename(aside)
    # Renaming the checkpoint itself leaves no path through it.
    other = checkpoint.parent / "1" if one == "." else checkpoint / other
    other.rename(checkpoint / one)
    aside.rename(other)
