"""Compiled programs in a folder, so that a later run of the same shape neither traces nor compiles.

JAX's own cache spares compilation alone: it is looked up by the traced program. Here programs are
looked up by what they are made from, see `config.programs`. They are as trustworthy as the folder:
reading one runs what is in it, as with JAX's cache.
"""

import concurrent.futures
import hashlib
import json
import logging
import pathlib
import pickle
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
from jax.experimental import serialize_executable

from invclr_jax.files import write_atomically
from invclr_jax.native.library import library
from invclr_jax.training.surroundings import surroundings

_HIT = "/jax/compilation_cache/cache_hits"
_DIGEST = hashlib.sha256().digest_size


class _Entry(NamedTuple):
    """A program, and the arguments that it is made for."""

    signature: str
    program: jax.stages.Compiled


class Programs:
    """The programs of one run.

    Args:
      folder: where programs are kept.
      run: all of the run that its programs depend on, as plain JSON values.
    """

    def __init__(self, folder: str | pathlib.Path, run: Mapping[str, Any]):
        key = json.dumps([run, surroundings()], sort_keys=True)
        self._folder = pathlib.Path(folder).expanduser() / "programs"
        self._key = hashlib.sha256(key.encode()).hexdigest()
        self._unwritten: dict[pathlib.Path, _Entry] = {}
        self._ahead: dict[pathlib.Path, concurrent.futures.Future[_Entry | None]] = {}
        library()  # registers functions that programs may call

    def read_ahead(self, name: str, devices: Sequence[jax.Device]) -> None:
        """Starts reading a program in the background; arguments as of `get`."""
        path, thread = self._path(name), concurrent.futures.ThreadPoolExecutor(1, "programs")
        self._ahead[path] = thread.submit(_read, path, devices)
        thread.shutdown(wait=False)

    def get(
        self, name: str, function: Any, arguments: tuple, devices: Sequence[jax.Device]
    ) -> jax.stages.Compiled:
        """The compiled function, read or compiled.

        Args:
          name: of the function, different for each of a run.
          function: what `jax.jit` or `jax.pmap` gives.
          arguments: of its calls; only their shapes, types and devices matter.
          devices: those that the program runs on.
        """
        path, signature = self._path(name), _signature(arguments)
        ahead = self._ahead.pop(path, None)
        entry = _read(path, devices) if ahead is None else ahead.result()
        if entry is not None and entry.signature == signature:
            return entry.program
        program, is_new = _compile(function, arguments)
        if is_new:
            self._unwritten[path] = _Entry(signature, program)
        return program

    def write(self) -> None:
        """Keeps what was compiled. Later than `get`, so that the first step need not wait."""
        for path, entry in self._unwritten.items():
            try:
                program = serialize_executable.serialize(entry.program)
                content = pickle.dumps((entry.signature, *program))
                content = zlib.compress(content, level=1)
                write_atomically(path, hashlib.sha256(content).digest() + content)
            except Exception as error:  # the run does not depend on it
                _log().warning("a compiled program could not be kept in %s: %s", path, error)
        self._unwritten.clear()

    def _path(self, name: str) -> pathlib.Path:
        return self._folder / f"{name}-{self._key}"


def _compile(function: Any, arguments: tuple) -> tuple[jax.stages.Compiled, bool]:
    """The program, and whether it can be kept.

    XLA cannot serialise again a CPU program that JAX has read from its own cache: functions would
    be missing in it.
    """
    hits = []

    def listen(event: str, **_: Any) -> None:
        if event == _HIT:
            hits.append(event)

    jax.monitoring.register_event_listener(listen)
    try:
        return function.lower(*arguments).compile(), not hits
    finally:
        jax.monitoring.unregister_event_listener(listen)


def _read(path: pathlib.Path, devices: Sequence[jax.Device]) -> _Entry | None:
    """What a file holds; None where there is none or it cannot be used."""
    try:
        content = path.read_bytes()
        if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
            raise ValueError("it has changed since it was written")
        signature, payload, inputs, outputs = pickle.loads(zlib.decompress(content[_DIGEST:]))
        load = serialize_executable.deserialize_and_load
        return _Entry(signature, load(payload, inputs, outputs, execution_devices=devices))
    except FileNotFoundError:
        return None
    except Exception as error:  # the run can compile it anew
        _log().warning("the compiled program %s cannot be used: %s", path, error)
        return None


def _signature(arguments: tuple) -> str:
    """Structure, shapes, types and devices of arguments."""
    leaves, structure = jax.tree.flatten(arguments)
    parts = [f"{leaf.shape} {leaf.dtype} {leaf.committed} {leaf.sharding}" for leaf in leaves]
    return "\n".join([str(structure), *parts])


def _log() -> logging.Logger:
    return logging.getLogger(__name__)
