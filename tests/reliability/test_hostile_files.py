"""Damaged and hostile files: an error of one kind, nothing run, nothing written."""

import contextlib
import io
import json
import pathlib
import tarfile
import tempfile
import zipfile

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from invclr_jax import data
from invclr_jax.evaluation.results import PROTOCOL_VERSION, Results
from invclr_jax.training.writers import METRICS, JsonLines

quick = settings(deadline=None, max_examples=150)


def npz(compressed):
    buffer = io.BytesIO()
    images = np.random.default_rng(0).integers(0, 256, (3, 4, 4, 3), dtype=np.uint8)
    save = np.savez_compressed if compressed else np.savez
    save(buffer, train_images=images, train_labels=np.arange(3), test_images=images)
    return buffer.getvalue()


def archive(mode):
    buffer = io.BytesIO()
    records = np.random.default_rng(0).integers(0, 10, (2, 3073), dtype=np.uint8).tobytes()
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name in names:
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(records)
            tar.addfile(member, io.BytesIO(records))
    return buffer.getvalue()


FILES = {
    "arrays": (npz(False), npz(True)),
    "cifar10": (archive("w"), archive("w:gz")),
}


@st.composite
def damaged(draw, wholes):
    """A file with some bytes changed, perhaps cut, perhaps with something in front."""
    raw = bytearray(draw(st.sampled_from(wholes)))
    for _ in range(draw(st.integers(0, 6))):
        # Headers and indices are where a byte matters most: at both ends.
        near = draw(st.integers(0, min(600, len(raw) - 1)))
        raw[draw(st.sampled_from([near, -1 - near]))] = draw(st.integers(0, 255))
    raw = raw[: draw(st.integers(0, len(raw)))] if draw(st.booleans()) else raw
    return draw(st.binary(max_size=3)) * draw(st.integers(0, 1)) + bytes(raw)


@pytest.mark.parametrize("name", FILES)
def test_damaged_data_is_read_or_refused(name):
    @quick
    @given(damaged(FILES[name]))
    def read(raw):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "data"
            path.write_bytes(raw)
            message = ""
            try:
                assert data.load(name, path=path).train.images.dtype == np.uint8
            except ValueError as error:
                message = str(error)
            assert raw not in FILES[name] or not message
            assert not message or str(path) in message
            assert "\n" not in message
            assert [entry.name for entry in pathlib.Path(folder).iterdir()] == ["data"]

    for whole in FILES[name]:
        read = example(whole)(read)
    read()


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 1000000, 1000000, 3)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-1, 4, 4, 3)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (3, 4, 4, 3)}",
        "__import__('os').system('touch mark')",
        "(" * 500,
    ],
)
def test_headers_that_lie(tmp_path, monkeypatch, header):
    monkeypatch.chdir(tmp_path)
    raw = header.encode().ljust(1000)
    array = b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw + b"0" * 10
    with zipfile.ZipFile("own.npz", "w") as stored:
        stored.writestr("train_images.npy", array)
    with pytest.raises(ValueError, match=r"own.npz cannot be read as an .npz file"):
        data.load("arrays", path="own.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["own.npz"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["protocols", "knn", "options", "metrics", "step", "seed", "model"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
GOOD = {
    "protocols": {
        "knn": {"options": {"version": PROTOCOL_VERSION, "a": 1}, "metrics": {"knn/accuracy": 0.5}}
    }
}


@st.composite
def results(draw):
    """A result file with one value replaced, any JSON, or any bytes."""
    kind = draw(st.sampled_from(["replaced", "json", "bytes"]))
    if kind == "bytes":
        return draw(st.binary(max_size=50))
    if kind == "json":
        return json.dumps(draw(JSON)).encode()
    record = json.loads(json.dumps(GOOD))
    path = draw(st.sampled_from([("protocols",), ("protocols", "knn"), ("metrics",), ("options",)]))
    place = record if path[0] == "protocols" else record["protocols"]["knn"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = draw(JSON)
    return json.dumps(record).encode()


@quick
@given(results())
def test_any_result_file_is_used_or_refused(raw):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "results.json"
        path.write_bytes(raw)
        with contextlib.suppress(ValueError):
            stored = Results(path, config={}, step=1, seed=0)
            outcome = stored.get_or_attempt("knn", {"a": 1}, lambda: {"knn/accuracy": 1})
            assert all(type(value) is float for value in outcome.metrics.values())


def test_a_good_result_file_is_used(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(GOOD))
    stored = Results(path, config={}, step=1, seed=0)
    outcome = stored.get_or_attempt("knn", {"a": 1}, dict)
    assert (outcome.status, outcome.metrics) == ("from the file", {"knn/accuracy": 0.5})


@quick
@given(st.binary(max_size=60), JSON)
def test_any_metrics_file_can_be_gone_on_with(raw, line):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / METRICS
        path.write_bytes(raw + b"\n" + json.dumps(line).encode() + b'\n{"step": 2}\n{"step": 4}')
        log = JsonLines(path, start_step=3)
        log.write(5, {"loss": 1.0})
        log.close()
        steps = [json.loads(line).get("step") for line in path.read_text().splitlines()]
        assert steps[-2:] == [2, 5]
