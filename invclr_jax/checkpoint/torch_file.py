"""Arrays by name from files of PyTorch: safetensors, and `.pth` without running what it asks for.

A `.pth` file is a zip archive with a pickle, a small program that may call any function it names.
Here the few names that a state dict needs stand for functions of ours; every other is refused.
"""

import collections
import math
import pathlib
import pickle
import zipfile
from typing import Any

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

_STORAGES = {
    "DoubleStorage": np.dtype("<f8"),
    "FloatStorage": np.dtype("<f4"),
    "HalfStorage": np.dtype("<f2"),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
}


def read(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The arrays of a file, or a ValueError that says why there are none.

    Args:
      path: a `.safetensors` file, or one that `torch.save(module.state_dict(), path)` wrote. Of a
        training checkpoint the dictionary `state_dict` or `model` is taken.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: give a .safetensors or .pth file")
    if zipfile.is_zipfile(path):
        return _read_pth(path)
    if path.suffix != ".safetensors":
        raise ValueError(
            f"{path} is not a .pth file of PyTorch 1.6 or later: it is damaged or older; save it "
            "again with torch.save or as safetensors"
        )
    try:
        return safetensors.numpy.load_file(path)
    except (safetensors.SafetensorError, ValueError, KeyError, OSError) as error:
        raise ValueError(
            f"{path} is not a complete safetensors file ({error}): it is damaged, fetch it again"
        ) from None


def _read_pth(path: pathlib.Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if len(names) != 1:
                raise pickle.UnpicklingError("it holds no data.pkl")
            folder = names[0].removesuffix("data.pkl")
            order = folder + "byteorder"
            if order in archive.namelist() and archive.read(order) != b"little":
                raise pickle.UnpicklingError("its numbers are big-endian")
            with archive.open(names[0]) as file:
                stored = _Unpickler(file, archive, folder).load()
    # A damaged pickle or archive can fail in any way.
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read as weights ({error}): it is damaged, hostile, or more than a "
            "state dict; save torch.save(module.state_dict(), path) or safetensors"
        ) from None
    for part in ("state_dict", "model"):
        if isinstance(stored, dict) and isinstance(stored.get(part), dict):
            stored = stored[part]
    arrays = {
        name: value
        for name, value in (stored.items() if isinstance(stored, dict) else ())
        if isinstance(name, str) and isinstance(value, np.ndarray)
    }
    if not arrays:
        raise ValueError(f"{path} holds no tensors by name: give the file of a state dict")
    return arrays


class _Unpickler(pickle.Unpickler):
    """Knows tensors, parameters and dictionaries; storages are members of the archive."""

    def __init__(self, file: Any, archive: zipfile.ZipFile, folder: str):
        super().__init__(file, encoding="utf-8")
        self._archive, self._folder = archive, folder

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> np.ndarray:
        kind, dtype, key, _, count = pid
        if kind != "storage" or not isinstance(dtype, np.dtype) or not str(key).isalnum():
            raise pickle.UnpicklingError(f"unknown reference {str(kind)[:40]!r}")
        member = self._archive.getinfo(f"{self._folder}data/{key}")
        if member.file_size != count * dtype.itemsize:
            raise pickle.UnpicklingError(f"storage {key} is not of its declared size")
        return np.frombuffer(self._archive.read(member), dtype)


def _tensor(storage, offset, shape, strides, *_: Any) -> np.ndarray:
    """Stands for `torch._utils._rebuild_tensor_v2`: a copy, of elements inside the storage only."""
    if not isinstance(storage, np.ndarray) or len(shape) != len(strides):
        raise pickle.UnpicklingError("a tensor without storage")
    if min((offset, *shape, *strides), default=0) < 0:
        raise pickle.UnpicklingError(f"a tensor of shape {shape} with strides {strides}")
    last = offset + sum((side - 1) * stride for side, stride in zip(shape, strides, strict=True))
    if math.prod(shape) > storage.size or (math.prod(shape) and last >= storage.size):
        raise pickle.UnpicklingError(f"a tensor of shape {shape} reaches outside its storage")
    steps = [stride * storage.itemsize for stride in strides]
    view = np.lib.stride_tricks.as_strided(storage[offset:], shape, steps)
    return np.array(view)


def _parameter(tensor: np.ndarray, *_: Any) -> np.ndarray:
    """Stands for `torch._utils._rebuild_parameter`."""
    return tensor


_ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
}
