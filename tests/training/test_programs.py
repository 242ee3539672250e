"""Programs that are kept: the same bits, never for other code, never in the way."""

import shutil
import zlib

import jax
import numpy as np
import optax
import pytest
from jax.experimental.compilation_cache import compilation_cache

from invclr_jax import api, data
from invclr_jax import config as configuration
from invclr_jax.config.build import NOTHING, Own
from invclr_jax.models.resnet import ResNet10
from invclr_jax.training import programs, surroundings
from tests.tiny_run import tiny_config

STEPS = 3
NAMES = {"first_state", "penalised_step", "step"}


def config_for(**overrides):
    """A run of both kinds of steps."""
    options = {"num_steps": STEPS, "checkpoint.every_steps": 2, "log.tensorboard": False}
    options |= {"penalty.every": 2, "penalty.num_samples": 3}
    options |= {"model.name": "vit_tiny", "model.width": 8, "model.options": {"depth": 1}}
    return tiny_config(**options | overrides)


@pytest.fixture(autouse=True)
def jax_cache(tmp_path):
    """JAX's own cache, empty, as a command has it; `jax_cache(None)` switches it off."""
    before = jax.config.values["jax_compilation_cache_dir"]

    def use(folder):
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", folder and str(folder))

    use(tmp_path / "jax")
    yield use
    use(before)


@pytest.fixture
def compiled(monkeypatch):
    """Counts what is compiled through `Programs`."""
    calls = []
    compile_ = programs._compile
    monkeypatch.setattr(programs, "_compile", lambda *args: calls.append(1) or compile_(*args))
    return calls


def kept(folder):
    return {path.name.partition("-")[0]: path for path in (folder / "programs").iterdir()}


def assert_same_bits(one, other):
    for mine, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_second_run_compiles_nothing_and_gives_the_same_bits(tmp_path, compiled, jax_cache):
    folder, short = tmp_path / "kept", tmp_path / "resumed"
    jax_cache(None)
    without = api.train(config_for(), tmp_path / "without").state
    jax_cache(tmp_path / "jax")
    assert not compiled
    first = api.train(config_for(), tmp_path / "first", programs=folder)
    assert len(compiled) == len(NAMES)
    assert kept(folder).keys() == NAMES
    second = api.train(config_for(), tmp_path / "second", programs=folder)
    shutil.copytree(tmp_path / "second", short)
    shutil.rmtree(short / "checkpoints" / str(STEPS))
    resumed = api.train(config_for(), short, programs=folder)
    assert len(compiled) == len(NAMES)
    for result in (first, second, resumed):
        assert_same_bits(result.state, without)


def test_files_that_cannot_be_read_are_written_anew(tmp_path, compiled, caplog):
    device, arguments = jax.local_devices()[:1], (jax.numpy.ones(3),)
    contents = {}
    for damage in ("not yet there", "empty", "shortened", "whole, of another program"):
        store = programs.Programs(tmp_path, {})
        program = store.get("plus", jax.jit(lambda x: x + 1), arguments, device)
        np.testing.assert_array_equal(program(*arguments), 2)
        store.write()
        path = kept(tmp_path)["plus"]
        contents[damage] = path.read_bytes()
        short = {"not yet there": b"", "empty": contents[damage][:-100]}
        path.write_bytes(short.get(damage, zlib.compress(b"something else")))
    assert len(compiled) == len(contents)
    assert caplog.text.count("cannot be used") == len(contents) - 1


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    function, argument = jax.jit(lambda x: x + 1), jax.numpy.ones(3)
    store = programs.Programs(tmp_path / "file", {})
    program = store.get("plus", function, (argument,), jax.local_devices()[:1])
    with caplog.at_level("WARNING", logger="invclr_jax"):
        store.write()
    assert "could not be kept" in caplog.text
    np.testing.assert_array_equal(program(argument), 2)


def test_other_arguments_are_compiled_for(tmp_path, compiled):
    function, device = jax.jit(lambda x: x + 1), jax.local_devices()[:1]
    for size, count in ((3, 1), (3, 1), (4, 2), (4, 2)):
        store = programs.Programs(tmp_path, {})
        x = jax.numpy.ones(size)
        np.testing.assert_array_equal(store.get("plus", function, (x,), device)(x), 2)
        store.write()
        assert len(compiled) == count


def test_what_jax_had_kept_is_not_kept_again(tmp_path):
    """XLA would write a program without some of its functions."""
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    try:
        for folder, expected in (("first", True), ("second", False)):
            store = programs.Programs(tmp_path / folder, {})
            x = jax.numpy.ones(3)
            store.get("plus", jax.jit(lambda x: jax.numpy.sin(x)), (x,), jax.local_devices()[:1])
            store.write()
            assert (tmp_path / folder).exists() == expected
    finally:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)


def dependencies(config, own=NOTHING):
    dataset = configuration.load_data(config)
    config = configuration.describe(config, dataset, own)
    recipe = configuration.from_config(config, dataset, own)
    return configuration.dependencies(config, dataset, recipe, own)


@pytest.mark.parametrize(
    "changed",
    [
        {"model.width": 16},
        {"penalty.weight": 0.2},
        {"batch_size": 32},
        {"optimizer.momentum": 0.8},
        {"num_steps": 4},
        {"data.num_train": 80},
        {"transform.variant": "authors"},
    ],
)
def test_a_run_that_differs_has_other_programs(changed):
    assert dependencies(config_for(**changed)) != dependencies(config_for())


@pytest.mark.parametrize(
    "changed", [{"seed": 5}, {"log.every_steps": 7}, {"data.seed": 3}, {"checkpoint.keep": 9}]
)
def test_what_changes_no_program_shares_them(changed):
    assert dependencies(config_for(**changed)) == dependencies(config_for())


@pytest.mark.parametrize(
    "own", [Own(encoder=ResNet10(width=4)), Own(tx=optax.sgd(0.1)), Own(schedule=lambda step: 0.1)]
)
def test_programs_of_own_objects_are_not_kept(own):
    assert dependencies(config_for(), own) is None


@pytest.mark.parametrize(
    "named",
    [
        {"method": "tests.own:WarmSimCLR"},
        {"optimizer.name": "optax:sgd", "optimizer.options": {"learning_rate": 0.1}},
        {"model.name": "tests.own:PlainNet", "model.options": {}},
        {"transform.name": "tests.own:Shade"},
    ],
)
def test_programs_of_named_parts_outside_this_package_are_not_kept(named):
    assert dependencies(config_for(**named)) is None


def test_own_data_shares_programs():
    dataset = configuration.load_data(config_for())
    split = data.Split(dataset.train.images * 1, dataset.train.labels)
    own = Own(dataset=data.Dataset(dataset.name, split, None, transform=dataset.transform))
    assert dependencies(config_for(), own) == dependencies(config_for())


def test_other_sources_and_other_machines_have_other_programs(tmp_path, monkeypatch):
    store = programs.Programs(tmp_path, {})
    assert programs.Programs(tmp_path, {})._path("step") == store._path("step")
    assert programs.Programs(tmp_path, {"a": 1})._path("step") != store._path("step")
    for name, value in (("sources", "other"), ("_cores", 77), ("processor", {"avx9"})):
        with monkeypatch.context() as patch:
            patch.setattr(surroundings, name, lambda *_, value=value: value)
            assert programs.Programs(tmp_path, {})._path("step") != store._path("step")
    monkeypatch.setenv("XLA_FLAGS", "--changed")
    assert programs.Programs(tmp_path, {})._path("step") != store._path("step")


def test_the_hash_of_sources_follows_every_file(tmp_path):
    seen = set()
    for name, content in (("a.py", "1"), ("b/c.so", "2"), ("a.py", "3"), ("b/d.py", "")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
        surroundings.sources.cache_clear()
        seen.add(surroundings.sources(tmp_path))
    assert len(seen) == 4
