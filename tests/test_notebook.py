"""The notebook runs from top to bottom."""

import pathlib
import re

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).parents[1]


def test_probe_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKDIR", str(tmp_path / "run"))
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    path = ROOT / "experiments" / "notebooks" / "probe_a_checkpoint.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "commit it without outputs"
    nbclient.NotebookClient(
        notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    text = "".join(
        output.get("text", "") + str(output.get("data", {}).get("text/plain", ""))
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )
    assert "(500, 32)" in text
    assert re.search(r"M=16 .*'sigma'", text)
    assert re.search(r"V_cond \d.*ratio 0\.\d", text)
