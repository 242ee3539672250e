"""Installing the package compiles its C++, wherever that can be done."""

import platform
import shutil
import sys

import pytest

from invclr_jax.models import library

TRIED = sys.platform.startswith("linux") and platform.machine() == "x86_64"


@pytest.mark.skipif(not TRIED or shutil.which("g++") is None, reason="nothing to compile with")
def test_compiled_where_there_is_a_compiler():
    """Otherwise every other test of it would be left out without a word."""
    assert library.library() in library.LEVELS
