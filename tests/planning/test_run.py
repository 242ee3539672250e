"""A plan of a tiny run: its own step, compiled; figures against what is known of it."""

import dataclasses
import importlib.util
import json
import re

import jax
import numpy as np
import pytest

from invclr_jax import config as configuration
from invclr_jax import parallel
from invclr_jax.data import cifar
from invclr_jax.planning import program, run
from invclr_jax.planning.machines import find
from invclr_jax.planning.report import table
from invclr_jax.training.step import compile_steps, create_state
from tests.training.small import rows, small_config, small_data, small_recipe

OPTIONS = {"batch_size": 16, "model.name": "resnet10", "data.num_train": 64, "data.num_test": 1}
KEY = 8
"""Bytes of a random key."""
LIBTPU = importlib.util.find_spec("libtpu") is not None


@pytest.fixture(scope="module")
def record():
    config = small_config(**OPTIONS)
    return json.loads(json.dumps(run.plan(config, "a100:2").record()))


def test_arguments_are_the_state_and_the_data(record):
    config = small_config(**OPTIONS)
    job = run.lower(config, "a100:2")
    state, data, indices, _ = job.lowered["plain"].args_info[0]
    size, held = (
        sum(np.prod(leaf.shape[1:]) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
        for tree in (state, data["image"])
    )
    for step in record["steps"].values():  # labels are no part of it, since nothing reads them
        assert step["arguments"] == size + held + 4 * indices.shape[1] + KEY
        assert step["outputs"] < 1000, "the new state takes the place of the old one"


def test_the_penalty_costs_more(record):
    plain, penalised = record["steps"]["plain"], record["steps"]["penalised"]
    assert 1.1 < penalised["flops"] / plain["flops"] < 3
    sent = {found["kind"]: found["count"] for found in plain["collectives"]}
    assert sent["all-gather"] == 1, "of projections, to be compared"
    assert sent["all-reduce"] > 20, "of batch norm's statistics, gradients and metrics"
    seconds = penalised["roofline"]["seconds"]
    assert penalised["images_per_second"] == pytest.approx(16 / seconds * record["efficiency"])
    assert record["hours"] == pytest.approx(20 * seconds / record["efficiency"] / 3600)


def test_the_table_shows_both(record):
    text = table(record)
    assert re.search(r"^ +plain +penalised$", text, re.MULTILINE)
    assert re.search(r"^all-gather +1: \d+\.\d\d MB +1: ", text, re.MULTILINE)
    assert "20 steps" in text
    assert all(sentence in text for sentence in record["advice"])


def test_a_step_that_does_not_fit(record):
    refused = {"refusal": "RESOURCE_EXHAUSTED: 20G of 16G"}
    text = table(record | {"steps": record["steps"] | {"penalised": refused}, "hours": None})
    assert "the penalised step does not fit: RESOURCE_EXHAUSTED: 20G of 16G" in text


def test_it_is_the_step_that_training_runs():
    """Flops of the same config and devices, compiled by training's own way."""
    config = small_config()
    recipe = small_recipe(config, axis=parallel.AXIS, num_devices=2)
    machine, split = find("a100:2"), small_data(n=64).train
    arguments = program.arguments(recipe, split, config.batch_size, machine, True)
    lowered = program.lower(recipe, True, machine, arguments)
    devices = jax.devices()[:2]
    state = parallel.replicate(create_state(recipe), devices)
    data = parallel.replicate(rows(n=64), devices)
    indices = parallel.distribute(np.arange(16, dtype=np.int32).reshape(2, 8), devices)
    shapes = jax.tree.map(lambda a: (a.shape, a.dtype), (state, data, indices))
    assert jax.tree.map(lambda a: (a.shape, a.dtype), arguments[:3]) == shapes
    new, _ = compile_steps(recipe, devices)(0, state, data, indices)
    assert int(parallel.unreplicate(new).step) == 1
    compiled, text = program.compile_step(lowered)
    assert compiled.flops > 0
    assert "ENTRY" in text


def test_a_batch_that_does_not_divide():
    with pytest.raises(
        ValueError, match="batch size 15 does not divide evenly over 2 devices: use 14"
    ):
        run.lower(small_config(**OPTIONS | {"batch_size": 15}), "a100:2")


def test_black_pictures_stand_for_cifar():
    dataset = cifar.black("cifar100")
    assert (dataset.train.images.shape, dataset.num_classes) == ((50_000, 32, 32, 3), 100)
    assert dataset.train.images.nbytes == 50_000 * 3072
    assert dataset.train.images.base.nbytes == 1, "of which nothing is in memory"


def test_a_stream_without_a_path_is_imagenet():
    config = configuration.load("imagenet")
    config.model.name, config.model.width, config.batch_size = "resnet10", 4, 16
    job = run.lower(config, "a100:2")
    rows = job.lowered["plain"].args_info[0][1]
    assert rows["image"].shape == (2, 8, 256, 256, 3), "only this step's pictures are on a device"
    assert job.num_steps == 100 * (1_281_167 // 16)


def test_how_much_the_compiler_optimises():
    """Only TPUs' compiler is slow enough to be asked for less."""
    asked = []

    class Lowered:
        def compile(self, compiler_options):
            asked.append(compiler_options)
            return jax.jit(lambda x: 2 * x).lower(1.0).compile()

        def as_text(self):
            return "program"

    job = run.lower(small_config(**OPTIONS), "a100:2")
    for compiler, effort in (("cpu", "least"), ("tpu", "least"), ("tpu", "usual")):
        machine = dataclasses.replace(job.machine, compiler=compiler)
        changed = dataclasses.replace(job, machine=machine, lowered={"plain": Lowered()})
        report = run.compile_job(changed, effort=effort)
        used = report.record()["steps"]["plain"]["effort"]
        assert used == ("usual" if compiler == "cpu" else effort)
    efforts = [options["exec_time_optimization_effort"] for options in asked]
    assert efforts == [0.0, -1.0, 0.0]


@pytest.mark.slow
@pytest.mark.skipif(not LIBTPU, reason="needs the TPU compiler: the extra tpu")
def test_compiled_for_tpus():
    """The TPU compiler's program: nothing wide, nothing on the host, nothing moved in vain."""
    texts = {}
    job = run.lower(small_config(**OPTIONS | {"model.width": 64, "model.conv": "auto"}), "v5e:2x2")
    report = run.compile_job(job, keep=texts.__setitem__)
    assert report.machine.num_hosts == 1
    for name, text in texts.items():
        assert "f64[" not in text
        assert "callback" not in text
        assert 0 < report.steps[name].program.memory < report.machine.memory
        gathers = [c for c in report.steps[name].program.collectives if c.kind == "all-gather"]
        assert [c.bytes for c in gathers] == [16 * 6 * 4], "projections of the batch, nothing else"
