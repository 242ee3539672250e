"""Config overrides of all kinds: they build a run, or are refused by our own sentence."""

import jax
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invclr_jax import cli
from invclr_jax import config as configuration
from invclr_jax.config import checks
from invclr_jax.training.step import create_state, train_step
from tests.tiny_run import tiny_images

SMALL = {
    "seed": 0,
    "num_steps": 3,
    "batch_size": 8,
    "model.name": "resnet10",
    "model.width": 2,
    "model.conv": "xla",
    "transform.size": 8,
    "data.num_train": 32,
    "data.num_test": 8,
    "penalty.num_samples": 2,
    "moco.queue_size": 32,
}
numbers = st.sampled_from([0, 1, 2, 3, 5, 7, 8, 16, 33, -1, 2**31])
floats = st.sampled_from([0.0, 1e-30, 0.1, 1.0, 3.0, 1e30, -1.0, float("nan"), float("inf")])
triples = st.tuples(floats, floats, floats) | st.tuples(floats) | st.just(("a", "b", "c"))


def choices(key, *more):
    known = checks._CHOICES | checks._CHOICES_OR_PATHS
    return st.sampled_from([*known[key], *more, "nonsense"])


OVERRIDES = {
    **dict.fromkeys(
        [
            *("seed", "batch_size", "chunks", "num_steps", "num_epochs", "model.width"),
            *("model.projection_dim", "penalty.num_samples", "penalty.every", "moco.queue_size"),
            *("batch_norm.groups", "data.num_train", "data.num_test", "transform.size"),
        ],
        numbers,
    ),
    **dict.fromkeys(
        [
            *("penalty.weight", "penalty.clip", "contrastive.temperature", "optimizer.momentum"),
            *("optimizer.base_learning_rate", "optimizer.ramp_epochs", "optimizer.weight_decay"),
            *("optimizer.trust_coefficient", "moco.momentum", "transform.strength"),
            *("transform.jitter_probability", "transform.grey_probability"),
        ],
        floats,
    ),
    **{key: choices(key) for key in checks._CHOICES if key != "log.tracker"},
    "optimizer.name": choices("optimizer.name", "optax:adamw", "optax:nonsense", "os:system"),
    "optimizer.schedule": choices("optimizer.schedule"),
    "head.name": st.sampled_from(["nonsense", "invclr_jax.models.heads:MoCoHead", "os:getcwd"]),
    "model.name": choices("model.name").filter(lambda name: name not in ("resnet34", "resnet50")),
    "method": st.sampled_from(["simclr", "moco", "byol"]),
    "fidelity": st.sampled_from(["paper", "authors", "none"]),
    "contrastive.loss": st.sampled_from(["info_nce", "nt_xent", "moco"]),
    "data.name": st.sampled_from(["spirograph", "arrays"]),
    "online_probe.enabled": st.booleans(),
    "moco.shuffle": st.booleans(),
    "transform.mean": triples,
    "transform.std": triples,
}


@st.composite
def overrides(draw):
    keys = draw(st.lists(st.sampled_from(sorted(OVERRIDES)), min_size=1, max_size=4, unique=True))
    name = {"data.name": draw(OVERRIDES["data.name"])}
    return SMALL | name | {key: draw(OVERRIDES[key]) for key in keys}


def build(values):
    """What `train` does before it compiles; raises ValueError on what it refuses."""
    nested = {}
    for key, value in values.items():
        *parents, last = key.split(".")
        place = nested
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    config = configuration.resolve(configuration.from_dict(nested))
    renders = config.data.name == "spirograph"
    dataset = configuration.load_data(config) if renders else tiny_images()
    config = configuration.describe(config, dataset)
    return configuration.from_config(config, dataset, axis=None), dataset, config


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(overrides())
def test_a_config_builds_or_is_refused(values):
    try:
        build(values)
    except ValueError as error:
        assert str(error)  # noqa: PT017


@pytest.mark.slow
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(overrides())
def test_a_config_that_builds_can_be_traced(values):
    """Whatever is not refused reaches the end of the step, so nobody meets a shape of JAX's."""
    try:
        recipe, dataset, config = build(values)
    except ValueError:
        return
    state = jax.eval_shape(lambda: create_state(recipe))
    rows = jax.eval_shape(lambda: dict(dataset.train.rows))
    indices = jax.ShapeDtypeStruct((config.batch_size,), "int32")
    key = jax.eval_shape(lambda: jax.random.key(0))
    for penalised in {config.penalty.weight > 0, False}:
        after, metrics = jax.eval_shape(
            lambda *args, penalised=penalised: train_step(recipe, penalised, *args),
            state,
            rows,
            indices,
            key,
        )
        assert jax.tree.map(lambda a: (a.shape, a.dtype), after) == jax.tree.map(
            lambda a: (a.shape, a.dtype), state
        ), "a step must leave a state that the next step takes"
        assert all(metric.shape == () for metric in metrics.values())


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("--config.penalty.wieght=1", "unknown config key 'penalty.wieght': did you mean 'penalty"),
        ("--config.nonsense.at.all=1", "unknown config key 'nonsense.at.all'"),
    ],
)
def test_an_unknown_key_on_the_command_line_gets_a_sentence(monkeypatch, word, words):
    said = []

    def parse(argv):
        raise AttributeError("'wieght'")

    def leave(sentence):
        said.append(sentence)
        raise SystemExit

    monkeypatch.setattr(cli.app, "parse_flags_with_usage", parse)
    monkeypatch.setattr(cli, "_leave", leave)
    with pytest.raises(SystemExit):
        cli._parse(["train", "--config=x.py", "--config.penalty.weight=1", word], "__main__")
    assert words in said[0]
