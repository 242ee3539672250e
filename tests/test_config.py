import importlib
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invclr_jax import config as configuration
from invclr_jax import data
from invclr_jax.methods import METHODS

CONFIGS = sorted(
    path.stem for path in pathlib.Path("configs").glob("*.py") if path.stem != "__init__"
)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_config_resolves_and_opens_with_what_a_user_asks(name):
    module = importlib.import_module(f"invclr_jax.configs.{name}")
    configuration.resolve(module.get_config())
    for word in ("invclr train", "Hardware:", "Expected"):
        assert word in module.__doc__


def test_round_trip_through_json():
    config = configuration.resolve(configuration.load("moco_cifar100"))
    config.transform.mean = (0.1, 0.2, 0.3)
    again = configuration.from_dict(json.loads(configuration.to_json(config)))
    assert again == config
    assert configuration.differences(again, config) == []


def test_paper_presets():
    cifar = configuration.resolve(configuration.load("cifar10"))
    assert (cifar.model.name, cifar.batch_size, cifar.num_epochs) == ("resnet50", 512, 1000)
    assert (cifar.penalty.weight, cifar.penalty.clip, cifar.penalty.num_samples) == (0.1, 1.0, 100)
    assert (cifar.optimizer.base_learning_rate, cifar.contrastive.temperature) == (3.0, 0.5)
    assert (cifar.contrastive.loss, cifar.penalty.estimator) == ("info_nce", "sampled")
    spirograph = configuration.resolve(configuration.load("spirograph"))
    assert (spirograph.model.name, spirograph.num_epochs) == ("resnet18", 50)
    assert (spirograph.penalty.weight, spirograph.penalty.clip) == (0.01, 1000.0)


METHOD_CONFIGS = [
    f"{name}:{method}{words}"
    for name, words in (("cifar_methods", "-cifar100-200"), ("cifar_methods_cpu", ""))
    for method in METHODS
]
METHOD_CONFIGS += ["cifar10_patches", "cifar10_patches:short"]


@pytest.mark.parametrize("name", METHOD_CONFIGS)
def test_a_config_of_every_method_makes_its_run(name):
    """Up to the objects; the statistics are those of the data."""
    config = configuration.load(name)
    config.transform.mean, config.transform.std = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)
    config = configuration.resolve(config)
    split = data.Split(np.zeros((2000, 32, 32, 3), np.uint8), np.zeros(2000, np.int32))
    dataset = data.Dataset(config.data.name, split, None, num_classes=10, transform="image")
    config = configuration.describe(config, dataset)
    again = configuration.from_dict(json.loads(configuration.to_json(config)))
    assert configuration.differences(again, config) == []
    config.num_epochs, config.num_steps = None, 3000
    recipe = configuration.from_config(config, dataset, axis=None)
    assert isinstance(recipe.method, METHODS[config.method])
    assert recipe.method.total_steps == 3000
    params, _ = jax.eval_shape(
        lambda key: recipe.method.init(key, jnp.zeros((2, *recipe.image_shape))), jax.random.key(0)
    )
    assert params.keys() == recipe.method.modules.keys()


def test_words_after_a_method():
    config = configuration.load("cifar_methods:vicreg-200-cifar100")
    assert (config.data.name, config.num_epochs, config.method) == ("cifar100", 200, "vicreg")
    with pytest.raises(ValueError, match="'svhn' is neither cifar10 nor cifar100 nor a number"):
        configuration.load("cifar_methods:byol-svhn")
    with pytest.raises(ValueError, match="no method 'dino': use one of simclr, moco, byol"):
        configuration.load("cifar_methods:dino")


def test_a_run_from_before_several_views_resumes(tmp_path):
    config = configuration.resolve(configuration.load("cifar10"))
    values = json.loads(configuration.to_json(config))
    for new in ("views", "byol", "simsiam", "barlow_twins", "vicreg", "moco_v3", "emp"):
        del values[new]
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert configuration.differences(configuration.read(tmp_path / "config.json"), config) == [
        "transform.channels: 3 there, None here",
        "transform.name: 'image' there, None here",
    ]  # which the data decide


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fidelity", ["paper", "authors"])
def test_fidelity_decides_all_its_keys(method, fidelity):
    config = configuration.default_config()
    config.method, config.fidelity = method, fidelity
    flat = configuration.flatten(configuration.resolve(config))
    for key, values in (configuration.FIDELITY | METHODS[method].defaults).items():
        assert flat[key] == values[fidelity == "authors"], key


def test_a_key_set_alone_beats_fidelity():
    config = configuration.default_config()
    config.fidelity, config.contrastive.loss = "authors", "info_nce"
    resolved = configuration.resolve(config)
    assert resolved.contrastive.loss == "info_nce"
    assert resolved.optimizer.rule == "torchlars"
    assert config.optimizer.rule is None, "resolve must not change what it was given"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("penalty.weight", -0.1, r"config.penalty.weight is -0.1: use a finite number of at least"),
        ("penalty.weight", float("nan"), "config.penalty.weight is nan"),
        ("penalty.estimator", "exakt", "use one of sampled, moments, forward, exact, finite"),
        ("penalty.num_samples", 0, "at least 1"),
        ("batch_size", 1, "at least 2"),
        ("batch_size", None, "config.batch_size is None: its default is 512"),
        ("eval.num_samples", 0, "config.eval.num_samples is 0: use an integer of at least 1"),
        ("optimizer.momentum", 1.0, "from 0 to below 1"),
        ("fidelity", "author", "use one of paper, authors"),
        ("method", "dino", "use one of simclr, moco, byol"),
        ("contrastive.loss", "moco", "use one of info_nce, nt_xent"),
        ("model.name", "vit", "use one of resnet9, resnet10, resnet18, resnet34, resnet50"),
        ("transform.jitter_probability", 1.5, "from 0 to 1"),
    ],
)
def test_nonsense_is_refused_with_a_sentence(key, value, words):
    config = configuration.default_config()
    config.update_from_flattened_dict({key: value})
    with pytest.raises(ValueError, match=words):
        configuration.resolve(config)


def test_batch_must_divide_the_queue():
    config = configuration.default_config()
    config.method, config.batch_size = "moco", 500
    with pytest.raises(
        ValueError, match="batch size 500 does not divide the queue length 2048: use 512 or 256"
    ):
        configuration.resolve(config)


def test_unknown_keys_are_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"did you mean 'penalty.weight'"):
        configuration.from_dict({"penalty": {"wieght": 1.0}})
    with pytest.raises(ValueError, match=r"config.batch_size cannot be 'many'"):
        configuration.from_dict({"batch_size": "many"})


def test_differences_leave_out_what_does_not_touch_training():
    one, other = configuration.default_config(), configuration.default_config()
    other.log.every_steps, other.data.path, other.penalty.weight = 7, "elsewhere", 0.5
    assert configuration.differences(one, other) == ["penalty.weight: 0.1 there, 0.5 here"]


def test_differences_leave_out_what_has_no_effect():
    one, other = configuration.default_config(), configuration.default_config()
    other.penalty.ridge, other.penalty.pair = 0.5, "views"
    assert configuration.differences(one, other) == []
    other.penalty.feature = one.penalty.feature = "canonical"
    other.penalty.estimator = one.penalty.estimator = "finite"
    changed = [line.partition(":")[0] for line in configuration.differences(one, other)]
    assert changed == ["penalty.pair", "penalty.ridge"]


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_any_override_is_accepted_or_refused_with_a_value_error(data):
    flat = configuration.flatten(configuration.default_config())
    key, value = data.draw(st.sampled_from(sorted(flat))), data.draw(_SCALARS)
    *parents, last = key.split(".")
    values = {last: value}
    for parent in reversed(parents):
        values = {parent: values}
    try:
        configuration.resolve(configuration.from_dict(values))
    except ValueError as error:
        assert str(error)  # noqa: PT017


@pytest.mark.parametrize("content", ["{", "[1, 2]", '{"seed": "x"}', '{"unknown": 1}', "\x00"])
def test_a_broken_config_file_gets_a_sentence(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"config"):
        configuration.read(path)
