"""The tutorials run from top to bottom, and are stored without outputs."""

import pathlib
import re

import nbformat
import pytest

from website import notebooks

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / notebooks.FOLDER
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))

PRINTED = {
    "train": r"canonical, whole schedule +0\.\d{3} +0\.\d{3} +-?0\.\d{3}\n.*\(8, 64\)",
    "audit": r"edges: .*angle +0\.\d{3} +0\.\d{3}.*shift_down +0\.\d{3} -> 0\.\d{3}",
    "own_parts": r"probe/lbfgs/untransformed/accuracy +(100|9\d|8\d)\.\d{3}\n",
}
"""What each must print."""


def read(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def test_all_are_known():
    assert sorted(PRINTED) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_not_stored(name):
    assert all(not cell.get("outputs") for cell in read(name).cells)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_it_runs(name, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")  # tests have eight devices
    notebook = read(name)
    notebooks.execute(notebook)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    text = "".join(
        output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in outputs
    )
    assert re.search(PRINTED[name], text, re.DOTALL), text
