"""The site builds in strict mode: every link and anchor exists, and nothing is fetched."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.slow

_FETCHED = re.compile(r'<(?:script|link|img|source)\b[^>]*(?:src|href)="https?://[^"]*"')


def test_it_builds_offline(tmp_path):
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", f"--site-dir={tmp_path}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*.html")}
    assert {"index.html", "tutorials/train.html", "reference/config.html"} <= set(pages)
    for name, page in pages.items():
        text = page.read_text()
        assert not _FETCHED.search(text), name
        assert "arithmatex" not in text, f"{name} has a formula that was not drawn"
    assert "Trains an encoder, resuming" in pages["reference/api.html"].read_text()
    assert "<math" in pages["understand/penalty.html"].read_text()
