"""`import invclr_jax as ic`: lazy, without side effects, and its names stay what they are."""

import importlib
import os
import pathlib
import re
import subprocess
import sys
import types

import pytest

import invclr_jax as ic

ROOT = pathlib.Path(__file__).parents[1]


def fresh(script):
    """Runs a script in a new process; what it prints."""
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_importing_imports_nothing_and_changes_nothing():
    script = """
import os, sys
before = dict(os.environ)
import invclr_jax
heavy = {"jax", "numpy", "flax", "optax", "orbax", "absl", "ml_collections"} & set(sys.modules)
print(heavy == set(), dict(os.environ) == before)
"""
    assert fresh(script) == ["True", "True"]


def test_using_it_changes_neither_the_environment_nor_jax():
    script = """
import os
import jax
values, before = dict(jax.config.values), dict(os.environ)
import invclr_jax as ic
for name in ic.__all__:
    getattr(ic, name)
print(dict(jax.config.values) == values, dict(os.environ) == before)
"""
    assert fresh(script) == ["True", "True"]


def test_loading_an_encoder_imports_only_what_it_uses():
    script = """
import sys
import invclr_jax as ic
ic.load_encoder("spirograph-cpu")
unused = ("tensorflow_datasets", "matplotlib", "tensorboardX", "tensorflow", "torch", "wandb")
print([name for name in unused if name in sys.modules] == [])
"""
    assert fresh(script)[-1] == "True"


@pytest.mark.parametrize("name", ic.__all__)
def test_every_name_is_there(name):
    assert getattr(ic, name) is not None
    assert name in dir(ic)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'tarin'"):
        ic.tarin  # noqa: B018


@pytest.mark.parametrize("name", ["train", "evaluate"])
def test_a_command_line_does_not_take_the_name_of_a_function(name):
    script = f"""
import types
import invclr_jax.{name}
import invclr_jax as ic
print(isinstance(ic.{name}, types.FunctionType))
"""
    assert fresh(script) == ["True"]
    module = importlib.import_module("invclr_jax.main")
    assert isinstance(module, types.ModuleType)


def first_story():
    """The README's first Python block."""
    text = (ROOT / "README.md").read_text()
    block = re.search(r"```python\n(.*?)```", text, re.S)
    assert block is not None
    return block[1]


def test_the_readme_opens_with_a_story_that_runs(tmp_path):
    story = first_story()
    assert len(story.strip().splitlines()) <= 15
    # The same lines at a size that a test can wait for.
    small = """
import invclr_jax.config.named as named
load = named.load
def smaller(name):
    config = load(name)
    config.num_steps, config.batch_size, config.model.width, config.transform.size = 2, 16, 4, 8
    config.data.num_train, config.data.num_test, config.log.tensorboard = 64, 32, False
    return config
named.load = smaller
import invclr_jax.config as configuration
configuration.load = smaller
"""
    done = subprocess.run(
        [sys.executable, "-c", small + story],
        cwd=tmp_path,
        env=os.environ | {"XLA_FLAGS": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs").is_dir()
