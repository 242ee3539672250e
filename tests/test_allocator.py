"""Freed memory is used again instead of being asked from the system."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
import numpy as np
from invclr_jax.allocator import keep_freed_memory

if sys.argv[1] == "keep" and not keep_freed_memory():
    print(-1)
    sys.exit()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

np.ones(2**24)
before = faults()
for _ in range(3):
    np.ones(2**24)  # 128 MB
print(faults() - before)
"""


def faults(mode):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, mode], check=True, capture_output=True, text=True
    )
    return int(done.stdout)


def test_freed_memory_is_used_again():
    kept = faults("keep")
    if kept < 0:
        pytest.skip("this C library has no mallopt")
    assert kept < 100 < faults("leave") / 10
