"""Orbax checkpoints: save, find, restore.

A checkpoint has four parts: `encoder` (parameters and running statistics, all that a probe needs),
`training` (everything else), `config` (the resolved configuration as JSON) and `checksums` of the
others. Arrays are stored as one copy, so any number of devices restores them. Orbax writes to a
temporary name and renames: a checkpoint that is listed is whole. The checksums tell when a file has
changed since, or belongs to another checkpoint.
"""

import contextlib
import json
import logging
import os
import pathlib
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from jaxtyping import PyTree

FOLDER = "checkpoints"


class Checkpoints:
    """The checkpoints of one run, in `workdir/checkpoints`.

    Args:
      workdir: the run's folder.
      keep: how many of the newest to keep; None to open them for reading only.
    """

    def __init__(self, workdir: str | pathlib.Path, keep: int | None = None):
        folder = pathlib.Path(workdir).resolve() / FOLDER
        if keep is None and not folder.is_dir():
            raise FileNotFoundError(
                f"{workdir} holds no checkpoint (looked for {folder}): give the workdir of a run "
                "that invclr train has made"
            )
        policy = ocp.checkpoint_managers.LatestN(keep) if keep is not None else None
        options = ocp.CheckpointManagerOptions(
            preservation_policy=policy,
            read_only=keep is None,
            create=keep is not None,
            save_interval_steps=0 if keep is None else 1,
            cleanup_tmp_directories=keep is not None,
        )
        with _without_remarks():
            self._manager = ocp.CheckpointManager(folder, options=options)
        self._folder = folder

    def steps(self) -> list[int]:
        """Steps with a whole checkpoint, oldest first."""
        return sorted(self._manager.all_steps())

    def save(self, step: int, encoder: PyTree, training: PyTree, config: Mapping[str, Any]) -> None:
        """Starts writing a checkpoint; NumPy trees, which must not be changed afterwards.

        What fails in the background raises OSError at the next call of this, `wait` or `close`.
        """
        values = dict(config)
        checksums = {"step": step, "config": _checksum_of_json(values)}
        checksums |= {"encoder": _checksum(encoder), "training": _checksum(training)}
        args = ocp.args.Composite(
            encoder=ocp.args.StandardSave(encoder),
            training=ocp.args.StandardSave(training),
            config=ocp.args.JsonSave(values),
            checksums=ocp.args.JsonSave(checksums),
        )
        with _writing():
            if step in self._manager.all_steps():
                self._manager.delete(step)  # a damaged one, which `newest` has passed over
            self._manager.save(step, args=args, force=True)

    def restore(self, step: int, templates: Mapping[str, PyTree]) -> dict[str, PyTree]:
        """Reads the named parts of a checkpoint.

        Args:
          step: which one.
          templates: part -> tree of arrays (or shapes) of the structure to restore.

        Returns:
          The parts, as NumPy arrays.
        """
        shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), dict(templates))
        args = {part: ocp.args.StandardRestore(tree) for part, tree in shapes.items()}
        try:
            restored = self._manager.restore(step, args=ocp.args.Composite(**args))
            parts = {part: jax.tree.map(np.asarray, restored[part]) for part in templates}
            jax.tree.map(_same_shape, shapes, parts)
            self._check(step, {part: _checksum(tree) for part, tree in parts.items()})
        except Exception as error:
            raise DamagedCheckpointError(
                f"the checkpoint of step {step} in {self._folder} cannot be read "
                f"({_first_line(error)}): remove {self._folder / str(step)} to use an older one"
            ) from error
        return parts

    def newest(self, templates: Mapping[str, PyTree]) -> tuple[int, dict[str, PyTree]] | None:
        """The newest checkpoint that can be read, or None if there is none at all."""
        steps = self.steps()
        for step in reversed(steps):
            try:
                return step, self.restore(step, templates)
            except DamagedCheckpointError as error:
                if step == steps[0]:
                    raise
                logging.getLogger(__name__).warning("%s; trying the one before", error)
        return None

    def config(self, step: int) -> dict[str, Any]:
        """The configuration stored with a checkpoint, plain JSON values."""
        try:
            values = self._read_json(step, "config")
            self._check(step, {"config": _checksum_of_json(values)})
            return values
        except Exception as error:
            raise DamagedCheckpointError(
                f"the config of step {step} in {self._folder} cannot be read "
                f"({_first_line(error)}): remove {self._folder / str(step)} to use an older one"
            ) from error

    def _read_json(self, step: int, part: str) -> dict[str, Any]:
        args = ocp.args.Composite(**{part: ocp.args.JsonRestore()})
        return self._manager.restore(step, args=args)[part]

    def _check(self, step: int, found: dict[str, int]) -> None:
        """Refuses parts that are not what was saved as this step."""
        if not (self._folder / str(step) / "checksums").is_dir():
            return  # saved before there were checksums
        saved = self._read_json(step, "checksums")
        for part, checksum in ({"step": step} | found).items():
            if saved.get(part) != checksum:
                raise ValueError(f"its {part} is not what was saved")

    def wait(self) -> None:
        """Returns when everything is written."""
        with _writing():
            self._manager.wait_until_finished()

    def close(self) -> None:
        """Waits, then lets go of threads and files."""
        with _writing():
            self._manager.close()


class DamagedCheckpointError(ValueError):
    """A checkpoint that is there but cannot be read."""


@contextlib.contextmanager
def _without_remarks() -> Iterator[None]:
    """Keeps Orbax from remarking that a folder opened for reading is read-only."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    """Turns whatever Orbax and TensorStore raise while they write into an OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        code = re.search(r"os_error_code='(\d+)'", str(error))
        reason = os.strerror(int(code[1])) if code else _first_line(error)
        raise OSError(int(code[1]) if code else 0, f"checkpoint not written: {reason}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _checksum(tree: PyTree) -> int:
    """CRC-32 over names, types, shapes and bytes of all arrays."""
    total = 0
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array = np.ascontiguousarray(leaf)
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        total = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), total)
        total = zlib.crc32(array.reshape(-1).view(np.uint8).data, total)
    return total


def _checksum_of_json(values: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(values, sort_keys=True).encode())


def _same_shape(expected, array):
    if expected.shape != array.shape or expected.dtype != array.dtype:
        raise ValueError(f"stored array is {array.dtype}{array.shape}, not {expected}")
