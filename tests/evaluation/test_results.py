"""Results in a file: used again for the same data, settings, weights and code, and only then."""

import dataclasses
import json

import jax
import pytest

from invclr_jax.data.dataset import Split
from invclr_jax.evaluation import protocols
from invclr_jax.evaluation import results as results_module
from invclr_jax.evaluation.context import Context
from invclr_jax.evaluation.results import Results
from tests.evaluation.contexts import SETTINGS, Plain, stored


def test_asking_twice_does_not_compute_twice(pictures, tmp_path, monkeypatch):
    path = tmp_path / "results.json"
    first = stored(pictures, path, ["knn"])["knn"]
    assert first.status == "measured"
    record = json.loads(path.read_text())
    assert record["protocols"]["knn"]["metrics"] == first.metrics
    assert record["config"]["model"]["width"] == 4
    assert record["seed"] == 0
    assert record["code_version"]
    monkeypatch.setitem(protocols.PROTOCOLS, "knn", lambda context: 1 / 0)
    again = Context(pictures.encoder, pictures.dataset, SETTINGS)
    second = stored(again, path, ["knn"])["knn"]
    assert second.metrics == first.metrics
    assert second.status == "from the file"
    faster = dataclasses.replace(SETTINGS, batch_size=7)  # decides no number
    other = Context(pictures.encoder, pictures.dataset, faster)
    assert stored(other, path, ["knn"])["knn"].status == "from the file"


def other_pixel(context):
    images = context.dataset.test.images.copy()
    images[5, 3, 2, 1] ^= 1
    test = Split(images, context.dataset.test.labels)
    return context.encoder, dataclasses.replace(context.dataset, test=test), SETTINGS


def other_label(context):
    labels = context.dataset.train.labels.copy()
    labels[7] = (labels[7] + 1) % 3
    train = Split(context.dataset.train.images, labels)
    return context.encoder, dataclasses.replace(context.dataset, train=train), SETTINGS


def other_weight(context):
    variables = jax.tree.map(lambda leaf: leaf * 1.01, context.encoder.variables)
    encoder = dataclasses.replace(context.encoder, variables=variables)
    return encoder, context.dataset, SETTINGS


def other_transform(context):
    transform = dataclasses.replace(context.transform, strength=0.6)
    encoder = dataclasses.replace(context.encoder, transform=transform)
    return encoder, context.dataset, SETTINGS


def other_setting(context):
    return context.encoder, context.dataset, dataclasses.replace(SETTINGS, num_alphas=7)


@pytest.mark.parametrize(
    "change", [other_pixel, other_label, other_weight, other_transform, other_setting]
)
def test_whatever_changes_a_result_computes_it_again(pictures, tmp_path, monkeypatch, change):
    monkeypatch.setitem(protocols.PROTOCOLS, "knn", lambda context: {"knn": 1.0})
    stored(pictures, tmp_path / "results.json", ["knn"])
    changed = Context(*change(pictures))
    assert stored(changed, tmp_path / "results.json", ["knn"])["knn"].status == "measured"


def test_other_code_of_a_protocol_computes_it_again(pictures, tmp_path, monkeypatch):
    monkeypatch.setitem(protocols.PROTOCOLS, "knn", lambda context: {"knn": 1.0})
    stored(pictures, tmp_path / "results.json", ["knn"])
    monkeypatch.setattr(results_module, "PROTOCOL_VERSION", 99)
    assert stored(pictures, tmp_path / "results.json", ["knn"])["knn"].status == "measured"


def test_an_encoder_without_visible_weights_is_always_computed(pictures, tmp_path, monkeypatch):
    monkeypatch.setitem(protocols.PROTOCOLS, "knn", lambda context: {"knn": 1.0})
    context = Context(Plain(pictures.transform), pictures.dataset, SETTINGS)
    for _ in range(2):
        outcome = stored(context, tmp_path / "results.json", ["knn"])["knn"]
        assert outcome.status == "measured"


def test_a_broken_result_file_gets_a_sentence(pictures, tmp_path):
    path = tmp_path / "results.json"
    for content in ("{", "[]", '{"protocols": 3}'):
        path.write_text(content)
        with pytest.raises(ValueError, match="is not a result file"):
            Results(path, config={}, step=4, seed=0)
