"""Rooflines, advice and machines, against sums by hand."""

import dataclasses
import importlib.util

import jax
import pytest

from invclr_jax.planning import machines
from invclr_jax.planning.advice import RESERVE, advise, largest_batch, smaller
from invclr_jax.planning.chips import CHIPS, of_kind
from invclr_jax.planning.collectives import Collective
from invclr_jax.planning.machines import Machine
from invclr_jax.planning.program import Program
from invclr_jax.planning.roofline import Bounds, bounds, hours
from tests.training.small import small_config

PROGRAM = Program(
    arguments=10**9,
    outputs=10**8,
    temporaries=5 * 10**9,
    code=10**7,
    flops=197e9,
    bytes=1638e6,
    collectives=(Collective("all-gather", 1, 8 * 10**6),),
    seconds=1.0,
    fingerprint="abc",
)


def machine(name="v5e", devices=8, chips=None):
    return Machine(name, CHIPS[name], jax.devices()[:devices], chips or devices, 1, "tpu")


def test_roofline_by_hand():
    found = bounds(PROGRAM, machine(), "float32", "default")
    assert found.compute == pytest.approx(1e-3)
    assert found.memory == pytest.approx(2e-3)
    assert found.links == pytest.approx(7e6 / 200e9)
    assert (found.seconds, found.limit) == (found.memory, "memory")
    exact = bounds(PROGRAM, machine(), "float32", "highest")
    assert exact.compute == pytest.approx(6e-3)
    assert exact.limit == "compute"
    half = bounds(PROGRAM, machine(), "bfloat16", "highest")
    assert half.compute == found.compute, "bfloat16 products are one pass"


def test_a_device_that_is_half_a_chip():
    whole = bounds(PROGRAM, machine("v4", 4), "float32", "default")
    half = bounds(PROGRAM, machine("v4", 8, chips=4), "float32", "default")
    assert half.compute == pytest.approx(2 * whole.compute)
    assert machine("v4", 8, chips=4).memory == 16 * 2**30


def test_gpus_round_to_tf32_unless_told():
    a100 = CHIPS["a100"]
    assert a100.peak("float32", "default") / a100.peak("float32", "highest") == pytest.approx(8)
    assert a100.peak("bfloat16", "highest") == 2 * a100.peak("float32", "default")


@pytest.mark.parametrize("chip", CHIPS.values(), ids=lambda chip: chip.name)
def test_chips_are_found_by_what_jax_calls_them(chip):
    assert of_kind(chip.kind) is chip
    assert of_kind("cpu") is None
    assert 20 < chip.bandwidth / chip.memory < 60, "one of them is not in bytes"
    assert chip.peak("float32", "highest") <= chip.peak("float32", "default") <= chip.bfloat16


def test_hours_of_a_run():
    assert hours(1.0, None, steps=3600, every=1, efficiency=0.5) == pytest.approx(2)
    # Of five steps, 0, 2 and 4 are penalised.
    found = hours(1.0, 3.0, steps=5, every=2, efficiency=1.0)
    assert found * 3600 == pytest.approx(2 * 1.0 + 3 * 3.0)


def test_the_largest_batch_just_fits():
    of_eight = machine()
    most = largest_batch(PROGRAM, of_eight, 64)
    assert most % 8 == 0

    def memory(batch):
        grown = int(PROGRAM.temporaries * batch / 64)
        return dataclasses.replace(PROGRAM, temporaries=grown).memory

    room = of_eight.memory * (1 - RESERVE)
    assert memory(most) <= room < memory(most + 8)


def test_advice_names_what_helps():
    config = small_config()
    slow = [Bounds(compute=1.0, memory=0.5, links=0.1)]
    said = " ".join(advise(config, machine(), [PROGRAM], slow))
    assert "a batch of up to" in said
    assert "bfloat16" in said
    assert "messages" not in said
    chatty = [Bounds(compute=0.1, memory=0.1, links=1.0)]
    assert "messages" in " ".join(advise(config, machine(), [PROGRAM], chatty))
    large = dataclasses.replace(PROGRAM, temporaries=15 * 10**9)
    assert advise(config, machine(), [large], slow) == smaller(config)
    assert "remat" in smaller(config)[0]
    config.model.remat, config.model.dtype = True, "bfloat16"
    assert not any("remat" in line or "bfloat16" in line for line in smaller(config))


@pytest.mark.parametrize(
    "topology", ["v9:2x4", "v5e", "v5e:8", "a100:2x4", "a100:0", "2x4", "v5e:2x", ""]
)
def test_an_unknown_topology_is_refused(topology):
    with pytest.raises(ValueError, match="use one such as v5e:2x4, v6e:2x4"):
        machines.find(topology)


def test_without_the_tpu_compiler(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r'pip install "invclr_jax\[tpu\]"'):
        machines.find("v5e:2x4")


def test_gpus_are_virtual_cpus_here():
    found = machines.find("h100:4")
    assert (len(found.devices), found.num_chips, found.compiler) == (4, 4, "cpu")
    assert found.memory == 80 * 10**9
    with pytest.raises(ValueError, match="xla_force_host_platform_device_count=512"):
        machines.find("h100:512")


def test_this_machine():
    found = machines.find(None)
    assert len(found.devices) == jax.device_count()
    assert (found.chip, found.memory) == (None, None)
