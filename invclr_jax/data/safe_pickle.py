"""Reads the pickles of CIFAR's python version without running anything they ask for.

A pickle is a small program that may call any function it names. The official files name three,
`numpy.core.multiarray._reconstruct`, `numpy.ndarray` and `numpy.dtype`; copies written by Python 3
also `_codecs.encode`. Here each name stands for a class of ours that takes the arguments the
official files give and nothing else; every other name is refused.
"""

import io
import pickle
from typing import Any

import numpy as np

_DTYPES = ("u1", "i1", "i2", "i4", "i8")


class _NoState:
    """Pickles may set the state of what they are given; these have none to set."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("unexpected state")


class _NdArray(_NoState):
    """Stands for `numpy.ndarray`, which is only ever an argument."""

    __slots__ = ()

    def __new__(cls, *_: Any):
        raise pickle.UnpicklingError("numpy.ndarray may not be called")


class _Encode(_NoState):
    """Stands for `_codecs.encode`, how protocol 2 writes bytes from Python 3."""

    __slots__ = ()

    def __new__(cls, text: str, encoding: str) -> bytes:  # type: ignore[misc]
        if encoding not in ("latin1", b"latin1"):
            raise pickle.UnpicklingError(f"encoding {encoding!r}")
        return text.encode("latin1")


class _Dtype:
    """Stands for `numpy.dtype`: integers only, so never an array of objects."""

    __slots__ = ("name",)

    def __init__(self, name: Any, *_: Any):
        self.name = name.decode("ascii") if isinstance(name, bytes) else name
        if self.name not in _DTYPES:
            raise pickle.UnpicklingError(f"arrays of {name!r}")

    def __setstate__(self, state: Any) -> None:
        order = state[1]  # (version, byte order, ...)
        if order not in ("<", "|", b"<", b"|"):
            raise pickle.UnpicklingError(f"byte order {order!r}")


class _Array:
    """Stands for `_reconstruct`: becomes an array once its state is set."""

    __slots__ = ("values",)

    def __init__(self, kind: Any, *_: Any):
        if kind is not _NdArray:
            raise pickle.UnpicklingError(f"arrays of kind {kind!r}")
        self.values: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        if not (isinstance(dtype, _Dtype) and isinstance(raw, bytes)):
            raise pickle.UnpicklingError("an array without plain bytes")
        if any(type(side) is not int or side < 0 for side in shape):
            raise pickle.UnpicklingError(f"shape {shape!r}")
        flat = np.frombuffer(raw, "<" + dtype.name)  # only a view: too few bytes fail to reshape
        self.values = flat.reshape(shape, order="F" if fortran else "C")


_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,  # the same, as NumPy 2 writes it
    ("numpy", "ndarray"): _NdArray,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _Encode,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _ALLOWED[module, name]


def loads(raw: bytes, where: str) -> dict[str, Any]:
    """The dictionary in one file of the python version.

    Args:
      raw: the file.
      where: its name, for the error message.

    Returns:
      Its entries by name, with arrays as NumPy arrays and texts as bytes.
    """
    try:
        entries = _Unpickler(io.BytesIO(raw), encoding="bytes").load()
    # A damaged pickle can fail in any way; none of them is more than "not a CIFAR file".
    except Exception as error:
        raise ValueError(
            f"{where} is not a file of CIFAR's python version ({error}): it is damaged or hostile; "
            "fetch the official archive again"
        ) from None
    if not isinstance(entries, dict):
        raise ValueError(f"{where} holds a {type(entries).__name__}, expected a dictionary")
    return {
        key.decode("latin1") if isinstance(key, bytes) else str(key): (
            value.values if isinstance(value, _Array) else value
        )
        for key, value in entries.items()
    }
