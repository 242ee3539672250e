"""Process settings: freed memory is used again, convolutions avoid the slow library."""

import os
import subprocess
import sys

import pytest

from invclr_jax import cpu

SCRIPT = """
import resource, sys
import numpy as np
from invclr_jax.cpu import keep_freed_memory

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


PROGRAM = """
from invclr_jax import cpu
cpu.avoid_slow_convolutions()
import jax, jax.numpy as jnp

x, w = jnp.ones((64, 8, 8, 64)), jnp.ones((3, 3, 64, 64))
conv = lambda x, w: jax.lax.conv(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), (1, 1), "SAME")
print("ynn" in jax.jit(conv).lower(x, w).compile().as_text())
"""
CHOICE = "--xla_cpu_experimental_ynn_fusion_type"


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ("", "False"),
        ("--xla_force_host_platform_device_count=2", "False"),
        (f"{CHOICE}=LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION", "True"),
    ],
)
def test_convolutions_avoid_the_slow_library(flags, found):
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == found


@pytest.mark.parametrize(("installed", "flags"), [(None, f"--other=1 {CHOICE}="), (1, "--other=1")])
def test_machines_with_tpus_are_left_alone(monkeypatch, installed, flags):
    monkeypatch.setenv("XLA_FLAGS", "--other=1")
    monkeypatch.setattr(cpu.importlib.util, "find_spec", lambda name: installed)
    cpu.avoid_slow_convolutions()
    assert os.environ["XLA_FLAGS"] == flags
