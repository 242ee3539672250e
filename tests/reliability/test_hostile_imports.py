"""A checkpoint is data: names in it import nothing that the caller does not trust."""

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import invclr_jax as ic
from invclr_jax import importing
from invclr_jax.checkpoint import Checkpoints
from tests.tiny_run import make_run, tiny_config, tiny_images

HOMES = ("invclr_jax.models", "invclr_jax.transforms", "invclr_jax.data")

words = st.sampled_from(
    [
        *("os", "sys", "subprocess", "builtins", "eval", "system", "antigravity", "evil"),
        *("invclr_jax", "models", "resnet", "ResNet18", "__import__", "__class__", "_secret"),
        *("..", ".", ""),
    ]
)
paths = st.lists(words, max_size=5).map(".".join) | st.text(max_size=20)
names = st.tuples(paths, paths).map(":".join) | st.text(max_size=30)


@settings(deadline=None, max_examples=500)
@given(names, st.sampled_from(HOMES))
def test_no_name_imports_what_is_not_trusted(name, home):
    before = set(sys.modules)
    try:
        target = importing.find(name, home=home, trust=())
    except ValueError as error:
        assert str(error)  # noqa: PT017
    else:
        assert isinstance(target, type)
        assert target.__module__.startswith(home)
    new = {module for module in set(sys.modules) - before if not module.startswith("invclr_jax")}
    assert "antigravity" not in sys.modules
    assert not {module for module in new if module in ("evil", "subprocess_evil")}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("os:system", "os:system is code outside invclr_jax.models.*--trust=os"),
        ("invclr_jax.models.library:logging", "is a module"),
        ("invclr_jax.models.build:build_encoder", "not a class of invclr_jax.models"),
        ("invclr_jax.models.network:nn.Module", "not an import path"),
        ("invclr_jax.models.network:__builtins__", "not an import path"),
        ("invclr_jax.modelsevil:A", "code outside"),
        (".evil:A", "not an import path"),
        ("../evil:A", "not an import path"),
        ("evil:A", "code outside invclr_jax.models, so nothing was imported"),
    ],
)
def test_what_is_refused_and_how(name, words):
    with pytest.raises(ValueError, match=words):
        importing.find(name, home="invclr_jax.models", trust=())


def test_trust_is_for_whole_names():
    with pytest.raises(importing.UntrustedError):
        importing.find(
            "json.decoder:JSONDecoder", home="invclr_jax.models", trust=("js", "", "jso")
        )
    found = importing.find("json.decoder:JSONDecoder", home="invclr_jax.models", trust=("json",))
    assert found is json.JSONDecoder


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The parts of a whole checkpoint, to be saved with another config."""
    workdir = tmp_path_factory.mktemp("stored")
    variables = make_run(workdir, tiny_config("arrays"), tiny_images())
    return dict(variables), Checkpoints(workdir).config(4)


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("model", {"name": "evil:Net", "options": {}}),
        ("model", {"name": "os:system", "options": {"command": "touch harm"}}),
        ("transform", {"name": "evil:Blur", "options": {}}),
        (
            "transform",
            {
                "name": "invclr_jax.transforms.base:Compose",
                "options": {"transforms": [{"import": "evil:Blur", "options": {}}]},
            },
        ),
        ("model", {"name": "resnet10", "width": "__import__('evil')"}),
        ("model", {"name": ["evil:Net"]}),
        ("transform", {"name": 3}),
    ],
)
def test_a_hostile_checkpoint_runs_nothing(stored, tmp_path, monkeypatch, section, values):
    """A module with side effects lies in the workdir, beside the checkpoint, and in the cwd."""
    variables, config = stored
    hostile = json.loads(json.dumps(config))
    hostile[section] |= values
    for folder in (tmp_path, tmp_path / "checkpoints"):
        folder.mkdir(exist_ok=True)
        (folder / "evil.py").write_text(f"open({str(tmp_path / 'harm')!r}, 'w').close()")
    monkeypatch.chdir(tmp_path)
    checkpoints = Checkpoints(tmp_path, keep=1)
    checkpoints.save(4, variables, {"step": 4}, hostile)
    checkpoints.close()
    with pytest.raises((ValueError, TypeError)) as raised:
        ic.load_encoder(tmp_path)
    assert str(raised.value)
    assert "evil" not in sys.modules
    assert not (tmp_path / "harm").exists()


def test_what_is_trusted_is_imported(stored, tmp_path, monkeypatch):
    variables, config = stored
    hostile = json.loads(json.dumps(config))
    hostile["transform"] |= {"name": "tests.own:Shade", "options": {"darkest": 0.75}}
    checkpoints = Checkpoints(tmp_path, keep=1)
    checkpoints.save(4, variables, {"step": 4}, hostile)
    checkpoints.close()
    with pytest.raises(importing.UntrustedError, match=r"tests.own:Shade .*trust=\(\"tests\",\)"):
        ic.load_encoder(tmp_path)
    assert ic.load_encoder(tmp_path, trust=("tests",)).transform.darkest == 0.75
