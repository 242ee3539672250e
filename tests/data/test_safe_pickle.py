import contextlib
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invclr_jax.data import safe_pickle
from tests.data import tiny_cifar

BATCH = {
    "data": np.arange(12, dtype=np.uint8).reshape(3, 4),
    "labels": [1, 2, 3],
    "batch_label": "training batch 1 of 5",
}
WRITERS = {
    "python 2": tiny_cifar.python2_pickle,
    **{f"protocol {p}": tiny_cifar.python3_pickle(p) for p in (0, 1, 2, 3, 4)},
}


@pytest.mark.parametrize("writer", WRITERS)
def test_reads_what_official_files_and_copies_use(writer):
    found = safe_pickle.loads(WRITERS[writer](BATCH), "x")
    np.testing.assert_array_equal(found["data"], BATCH["data"])
    assert found["data"].dtype == np.uint8
    assert found["labels"] == [1, 2, 3]


@pytest.mark.parametrize("writer", ["python 2", "protocol 2", "protocol 4"])
def test_reads_column_major_and_wide_arrays(writer):
    array = np.asfortranarray(np.arange(300, 312).reshape(3, 4))
    found = safe_pickle.loads(WRITERS[writer]({"a": array}), "x")["a"]
    np.testing.assert_array_equal(found, array)


class Runs:
    """Pickles to a call, and to a state set on what it returns."""

    def __init__(self, call, *args, state=None):
        self.reduced = (call, args) if state is None else (call, args, state)

    def __reduce__(self):
        return self.reduced


@pytest.fixture
def mark(tmp_path):
    """A file that hostile pickles would make."""
    path = tmp_path / "mark"
    yield path
    assert not path.exists()


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "wrap", [lambda x: x, lambda x: {"data": x}, lambda x: {"a": [{"b": (x,)}]}]
)
@pytest.mark.parametrize("call", ["system", "eval", "exec", "open", "object array"])
def test_hostile_files_run_nothing(mark, protocol, wrap, call):
    payload = {
        "system": Runs(os.system, f"touch {mark}"),
        "eval": Runs(eval, f"open({str(mark)!r}, 'w')"),
        "exec": Runs(exec, f"open({str(mark)!r}, 'w')"),
        "open": Runs(open, str(mark), "w"),
        "object array": np.array([Runs(os.system, f"touch {mark}")], object),
    }[call]
    with pytest.raises(ValueError, match="x is not a file of CIFAR's python version"):
        safe_pickle.loads(pickle.dumps(wrap(payload), protocol=protocol), "x")


GLOBAL = {
    "array": b"cnumpy.core.multiarray\n_reconstruct\n",
    "ndarray": b"cnumpy\nndarray\n",
    "dtype": b"cnumpy\ndtype\n",
    "encode": b"c_codecs\nencode\n",
}


@pytest.mark.parametrize(
    "program",
    {
        "object dtype": GLOBAL["dtype"] + b"(U\x01OK\x00K\x01tR.",
        "text dtype": GLOBAL["dtype"] + b"(U\x02S9K\x00K\x01tR.",
        "ndarray called": GLOBAL["ndarray"] + b"((J\xff\xff\xff\x7ftU\x02u1tR.",
        "other kind": GLOBAL["array"] + b"(" + GLOBAL["dtype"] + b"(K\x00tU\x01btR.",
        "other codec": GLOBAL["encode"] + b"(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.",
        "numpy load": b"cnumpy\nload\n(U\x01xtR.",
        "dotted": b"\x80\x04\x8c\x05numpy\x8c\x0adtype.type\x93.",
        "extension": b"\x82\x01.",
        "persistent id": b"Pabc\n.",
        # setting state on a stand-in itself would change it for every later file
        **{f"state of {k}": v + b"N}U\x04nameU\x01Os\x86b." for k, v in GLOBAL.items()},
    }.items(),
    ids=lambda item: item[0],
)
def test_allowed_names_cannot_be_misused(program):
    with pytest.raises(ValueError, match="python version"):
        safe_pickle.loads(program[1], "x")
    assert safe_pickle.loads(WRITERS["protocol 2"](BATCH), "x")["labels"] == [1, 2, 3]


@pytest.mark.parametrize("shape", [(3, 5), (-1, 4), (2**40, 2**40), (3.0, 4)])
def test_shapes_must_match_the_bytes(shape):
    state = (1, shape, np.dtype("u1"), False, b"\0" * 12)
    made = Runs(np._core.multiarray._reconstruct, np.ndarray, (0,), b"b", state=state)
    with pytest.raises(ValueError, match="python version"):
        safe_pickle.loads(pickle.dumps({"data": made}, protocol=2), "x")


def test_only_dictionaries():
    with pytest.raises(ValueError, match="holds a list, expected a dictionary"):
        safe_pickle.loads(pickle.dumps([1]), "x")


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_damaged_files_give_one_kind_of_error(draw):
    raw = bytearray(WRITERS[draw.draw(st.sampled_from(list(WRITERS)))](BATCH))
    for _ in range(draw.draw(st.integers(1, 4))):
        raw[draw.draw(st.integers(0, len(raw) - 1))] = draw.draw(st.integers(0, 255))
    raw = raw[: draw.draw(st.integers(0, len(raw)))] if draw.draw(st.booleans()) else raw
    with contextlib.suppress(ValueError):
        assert isinstance(safe_pickle.loads(bytes(raw), "x"), dict)
