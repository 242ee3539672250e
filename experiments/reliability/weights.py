"""Files of weights that are damaged, or that ask for code to be run."""

import functools
import io
import json
import pathlib
import pickle
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy

from invclr_jax.checkpoint import torch_names
from invclr_jax.checkpoint.torch_import import load_torch
from invclr_jax.models import network
from invclr_jax.models.resnet import ResNet10

MODULE = ResNet10(width=2)

CUTS, FLIPS = 20, 60
"""Lengths that each whole file is cut to, and bits that are flipped in it."""

CALLS = (
    ("os", "system"),
    ("posix", "system"),
    ("subprocess", "check_call"),
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("builtins", "getattr"),
    ("importlib", "import_module"),
    ("torch", "load"),
    ("torch.hub", "load"),
    ("numpy", "load"),
    ("webbrowser", "open"),
    ("pathlib", "Path.touch"),
)
"""What hostile pickles call with a command that would create a file."""


def weights(folder: pathlib.Path, seed: int = 0) -> dict:
    """Reads damaged and hostile files by `load_torch`.

    Each must be refused by a ValueError or give the weights that were saved, and none may run
    anything.
    """
    mark, place = folder / "harm", folder / "weights"
    place.mkdir(exist_ok=True)
    outcomes, failures = {"refused": 0, "intact": 0, "lost": 0}, []
    for name, contents in _files(mark, np.random.default_rng(seed)):
        file = place / name.split(" ")[0]
        file.write_bytes(contents)
        outcome = _read(file)
        if mark.exists():
            outcome = "lost"
            mark.unlink()
        outcomes[outcome] += 1
        if outcome == "lost":
            failures.append(name)
    tried = sum(outcomes.values())
    survived = tried - outcomes["lost"]
    called = {"calls": len(CALLS), "failures": failures}
    return {"tried": tried, "survived": survived, **outcomes, **called}


@functools.cache
def arrays() -> dict[str, np.ndarray]:
    """What the whole files hold: weights of `MODULE` by torchvision's names and layout."""
    rng = np.random.default_rng(1)
    shapes, statistics, _ = jax.eval_shape(
        lambda: network.init(MODULE, jax.random.key(0), jnp.zeros((2, 32, 32, 3)))
    )
    found = {}
    for route, leaf in torch_names.paths({"params": shapes, **statistics}):
        shape = [leaf.shape[axis] for axis in (3, 2, 0, 1)] if leaf.ndim == 4 else leaf.shape
        found[torch_names.torch_name(route)] = rng.random(shape).astype(np.float32)
    return found


@functools.cache
def _saved() -> list[np.ndarray]:
    """The same as `load_torch` reads them from a whole file."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "whole.safetensors"
        safetensors.numpy.save_file(arrays(), file)
        return jax.tree.leaves(jax.device_get(load_torch(file, MODULE).variables))


def _read(file: pathlib.Path) -> str:
    try:
        found = jax.tree.leaves(jax.device_get(load_torch(file, MODULE).variables))
    except ValueError:
        return "refused"
    except Exception:
        return "lost"
    return "intact" if jax.tree.all(jax.tree.map(np.array_equal, found, _saved())) else "lost"


def _files(mark: pathlib.Path, rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """Names, the first word of which is a file's, and contents."""
    whole = safetensors.numpy.save(arrays())
    header = 8 + struct.unpack("<Q", whole[:8])[0]
    # Nothing guards the numbers themselves in a safetensors file; a zip archive has sums of all.
    yield from _damaged("a.safetensors", whole, header, rng)
    archive = pth(_state_dict)
    yield from _damaged("a.pth", archive, len(archive), rng)
    for name, text in _lies(json.loads(whole[8:header])).items():
        raw = text.encode()
        yield f"a.safetensors {name}", struct.pack("<Q", len(raw)) + raw + whole[header:]
    for length in (0, header - 9, 2**31, 2**63, 2**64 - 1):
        yield f"a.safetensors header of {length} bytes", struct.pack("<Q", length) + whole[8:]
    for module, function in CALLS:
        called = pth(functools.partial(_call, module, function, mark))
        yield f"a.pth calling {module}.{function}", called


def _damaged(
    name: str, whole: bytes, guarded: int, rng: np.random.Generator
) -> Iterator[tuple[str, bytes]]:
    for length in sorted(int(n) for n in rng.integers(len(whole), size=CUTS)):
        yield f"{name} cut to {length} bytes", whole[:length]
    for at in sorted(int(n) for n in rng.integers(guarded, size=FLIPS)):
        raw = bytearray(whole)
        raw[at] ^= 1 << int(rng.integers(8))
        yield f"{name} with a bit of byte {at} flipped", bytes(raw)


def _lies(header: dict) -> dict[str, str]:
    """Headers of safetensors files that say what is not so."""
    name = "conv1.weight"
    changes: dict[str, dict] = {
        "more pictures than bytes": {"shape": [2**40, 3, 3, 3]},
        "a negative side": {"shape": [-4, 3, 3, 3]},
        "offsets outside": {"data_offsets": [0, 2**40]},
        "offsets backwards": {"data_offsets": [432, 0]},
        "an unknown dtype": {"dtype": "F4096"},
        "no shape": {"shape": None},
    }
    told = {what: json.dumps(header | {name: header[name] | c}) for what, c in changes.items()}
    return told | {"no JSON": "{" * 100, "a list": "[]", "nested deeply": "[" * 5000 + "]" * 5000}


# The format of PyTorch's files, written by hand ---------------------------------------------------


def pth(pickled: Callable[[zipfile.ZipFile], bytes]) -> bytes:
    """An archive as `torch.save` writes it.

    Args:
      pickled: adds storages to the archive and returns the pickle.
    """
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled(archive))
        archive.writestr("archive/byteorder", "little")
    return file.getvalue()


def _state_dict(archive: zipfile.ZipFile) -> bytes:
    """{name: a call of torch._utils._rebuild_tensor_v2 on a storage}."""
    items = b""
    for key, (name, array) in enumerate(arrays().items()):
        archive.writestr(f"archive/data/{key}", array.tobytes())
        reference = b"(" + _word("storage") + b"ctorch\nFloatStorage\n" + _word(str(key))
        reference += _word("cpu") + _number(array.size) + b"tQ"
        strides = [stride // array.itemsize for stride in array.strides]
        shape, steps = (b"(" + b"".join(map(_number, n)) + b"t" for n in (array.shape, strides))
        empty = b"ccollections\nOrderedDict\n)R"
        made = b"ctorch._utils\n_rebuild_tensor_v2\n(" + reference + _number(0) + shape + steps
        items += _word(name) + made + b"\x89" + empty + b"tR"
    return b"\x80\x02}(" + items + b"u."


def _call(module: str, function: str, mark: pathlib.Path, _: zipfile.ZipFile) -> bytes:
    command = pickle.dumps(f"touch {mark}", 2)[2:-1]  # without its protocol and its end
    return b"\x80\x02" + f"c{module}\n{function}\n(".encode() + command + b"tR."


def _word(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def _number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)
