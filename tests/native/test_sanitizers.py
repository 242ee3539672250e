"""The C++ kernels stay within their arrays, whatever the sizes."""

import pathlib
import runpy
import shutil
import subprocess
import sys

import pytest
import setuptools

from invclr_jax.native import library

ROOT = pathlib.Path(__file__).resolve().parents[2]
SANITIZERS = "address,undefined"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or shutil.which("g++") is None,
        reason="nothing to compile with",
    ),
]


@pytest.fixture
def flags(monkeypatch):
    """What setup.py tells the compiler, by level."""
    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    return runpy.run_path(str(ROOT / "setup.py"))["LEVELS"]


@pytest.mark.parametrize("level", library.LEVELS)
def test_no_sanitizer_complains(tmp_path, flags, level):
    if not library.LEVELS[level] <= library.processor():
        pytest.skip(f"this processor has no {level}")
    program = tmp_path / "sanitized"
    compiled = subprocess.run(
        [
            *("g++", "-std=c++17", "-O1", "-g", "-pthread", *flags[level]),
            *(f"-fsanitize={SANITIZERS}", "-fno-sanitize-recover=all"),
            *("-I", str(ROOT / "invclr_jax/native"), str(ROOT / "tests/native/sanitized.cc")),
            *("-o", str(program)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if "cannot find" in compiled.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert compiled.returncode == 0, compiled.stderr
    run = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
