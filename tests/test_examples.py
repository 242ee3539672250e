"""The examples run as their docstrings say, and are short enough to read."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
LONGEST = 60
PRINTED = {
    "own_encoder": r"width = 8\n\)\nfeatures \(200, 16\) of step 20",
    "own_transform": r"V_cond/V_total 0\.\d{3}",
    "audit": r"brightness .*hue is 0\.\d\d of all variance\nwrote a page of \d+ kB",
    "adapt": r"canonical correlation (0\.\d{3}) -> (0\.\d{3})",
    "several_devices": r"2 devices, 64 images a step\nloss \d\.\d{3} after 10 steps",
}
"""What each must print."""


def test_each_is_short():
    scripts = [path for path in (ROOT / "examples").glob("*.py") if path.stem != "__init__"]
    assert len(scripts) >= len(PRINTED)
    assert [p.name for p in scripts if len(p.read_text().splitlines()) >= LONGEST] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PRINTED)
def test_it_runs(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{name}"],
        cwd=tmp_path,
        env=os.environ | {"XLA_FLAGS": "", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(PRINTED[name], done.stdout, re.DOTALL)
    assert found, done.stdout
    if name == "adapt":
        assert float(found[2]) > float(found[1])
    assert list(tmp_path.iterdir()) == []
