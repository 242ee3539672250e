"""Installing compiles the C++ wherever that can be done; what this processor can use is taken."""

import importlib.util
import platform
import shutil
import sys

import pytest

from invclr_jax.native import library

TRIED = sys.platform.startswith("linux") and platform.machine() == "x86_64"


@pytest.mark.skipif(not TRIED or shutil.which("g++") is None, reason="nothing to compile with")
def test_compiled_where_there_is_a_compiler():
    """Otherwise every other test of it would be left out without a word."""
    assert library.library() in library.LEVELS


def test_a_library_must_suit_the_processor(monkeypatch):
    monkeypatch.setattr(library, "processor", lambda: {"sse2"})
    assert library.library.__wrapped__() is None


def test_a_library_that_cannot_be_loaded_is_passed_over(monkeypatch, tmp_path):
    path = tmp_path / "broken.so"
    path.write_text("no library")
    spec = importlib.util.spec_from_file_location("broken", path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    assert not library._register.__wrapped__("avx2")
