"""Every protocol on a tiny run: what is measured and how it is named; one fails alone."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from invclr_jax.data.dataset import Split
from invclr_jax.evaluation import protocols
from invclr_jax.evaluation.context import Context
from tests.evaluation.contexts import SETTINGS, Plain, by_class, stored

SOLVER = ("iterations", "grad_norm")


def test_untransformed_agrees_with_scikit_learn(pictures):
    metrics = protocols.untransformed(pictures)
    train, test = pictures.plain
    reference = LogisticRegression(C=1 / (2 * len(train) * 1e-5), tol=1e-8, max_iter=5000)
    reference.fit(train.astype(np.float64), pictures.train.labels)
    accuracy = 100 * reference.score(test.astype(np.float64), pictures.test.labels)
    found = metrics["probe/lbfgs/untransformed/accuracy"]
    assert abs(found - accuracy) <= 100 / len(test) + 1e-6
    assert metrics["probe/lbfgs/untransformed/grad_norm"] < 1e-4


def test_the_selected_probe_is_that_of_standardised_features(pictures):
    metrics = protocols.untransformed(pictures)
    (train, test), labels = pictures.plain, pictures.train.labels
    train, test = ((z - train.mean(0)) / train.std(0) for z in (train, test))
    usual = (train**4).mean(0) <= 10  # 10 rows choose l2: rarer features are left out
    train, test = (z[:, usual].astype(np.float64) for z in (train, test))
    l2 = metrics["probe/selected/untransformed/l2"]
    reference = LogisticRegression(C=1 / (2 * len(train) * l2), tol=1e-8, max_iter=5000)
    logs = reference.fit(train, labels).predict_log_proba(test)
    loss = -logs[np.arange(len(test)), pictures.test.labels].mean()
    assert metrics["probe/selected/untransformed/loss"] == pytest.approx(loss, rel=1e-2)
    # Its features have no scale, unlike those of the paper's probe.
    scaled = Context(Scaled(pictures.encoder, 30.0), pictures.dataset, SETTINGS)
    other = protocols.untransformed(scaled)
    for what in ("accuracy", "l2"):
        name = f"probe/selected/untransformed/{what}"
        assert other[name] == pytest.approx(metrics[name])
    name = "probe/lbfgs/untransformed/loss"
    assert other[name] != pytest.approx(metrics[name], rel=1e-2)


class Scaled:
    """An encoder whose features are multiples of another's."""

    def __init__(self, encoder, factor):
        self.transform = encoder.transform
        self.encode_inputs = lambda images: factor * encoder.encode_inputs(images)


def test_average_also_has_the_selected_probe_and_knn_at_the_largest_m(pictures):
    metrics = protocols.average(pictures)
    extra = {name for name in metrics if not name.startswith("probe/lbfgs/M=")}
    selected = {f"probe/selected/M=4/{s}" for s in ("accuracy", "loss", "l2", *SOLVER)}
    assert extra == selected | {"knn/k=96/M=4/accuracy"}
    train, test = pictures.averages[4]
    similarity = test @ train.T / np.linalg.norm(train, axis=1)
    similarity /= np.linalg.norm(test, axis=1)[:, None]
    votes = np.exp(similarity / 0.1) @ np.eye(3)[pictures.train.labels]  # all 96 rows vote
    accuracy = 100 * np.mean(votes.argmax(1) == pictures.test.labels)
    assert metrics["knn/k=96/M=4/accuracy"] == pytest.approx(accuracy)


def test_average_names_every_m_and_agrees_with_ridge(spirograph):
    metrics = protocols.average(spirograph)
    assert {
        f"probe/ridge/M={m}/mse/{f}" for m in (1, 2, 4) for f in ("m", "b", "sigma", "f_r")
    } <= (metrics.keys())
    train, test = (z.astype(np.float64) for z in spirograph.averages[4])
    targets = spirograph.train.labels
    reference = Ridge(alpha=targets.shape[1] * len(train) * 1e-8, solver="svd").fit(train, targets)
    errors = ((reference.predict(test) - spirograph.test.labels) ** 2).mean(0)
    np.testing.assert_allclose(metrics["probe/ridge/M=4/mse/m"], errors[0], rtol=2e-2)
    total = sum(metrics[f"probe/ridge/M=4/mse/{f}"] for f in ("m", "b", "sigma", "f_r"))
    np.testing.assert_allclose(metrics["probe/ridge/M=4/mse/total"], total, rtol=1e-6)


def test_label_fraction_of_one_is_the_whole_probe(pictures):
    metrics = protocols.label_fraction(pictures)
    whole = protocols.untransformed(pictures)["probe/lbfgs/untransformed/accuracy"]
    assert metrics["probe/lbfgs/untransformed/fraction=1/accuracy"] == pytest.approx(whole)
    assert "probe/lbfgs/untransformed/fraction=0.5/accuracy" in metrics


def test_invariance_keeps_beta_fixed(pictures):
    """With alpha's box shrunk to a point nothing is left to vary: crops and flips stay put."""
    metrics = protocols.conditional_variance(pictures)
    assert metrics["invariance/conditional_variance"] > 0
    ratio = metrics["invariance/conditional_variance"] / metrics["invariance/total_variance"]
    assert metrics["invariance/ratio"] == pytest.approx(ratio, rel=1e-4)
    still = dataclasses.replace(pictures.encoder.transform, strength=0.0)
    encoder = dataclasses.replace(pictures.encoder, transform=still)
    frozen = Context(encoder, pictures.dataset, SETTINGS)
    assert protocols.conditional_variance(frozen)["invariance/conditional_variance"] < 1e-9


@pytest.mark.parametrize("name", ["pictures", "spirograph"])
def test_alpha_has_components_and_a_reference(request, name):
    context = request.getfixturevalue(name)
    metrics = protocols.alpha(context)
    for component in context.alpha_names:
        assert metrics[f"alpha/ridge/mse/{component}"] > 0
        assert f"alpha/reference/{component}" in metrics
    expected = {"pictures": "hue", "spirograph": "b_b"}[name]
    assert context.alpha_names[-1] == expected
    variance = np.mean(context.transform.alpha.variance)
    assert metrics["alpha/reference/mean"] == pytest.approx(variance, rel=0.4)


def test_ensemble_beside_averaging(pictures):
    metrics = protocols.ensemble(pictures)
    for m in SETTINGS.num_samples:
        for kind in ("averaging", "ensembling"):
            assert 0 <= metrics[f"ensemble/{kind}/M={m}/accuracy"] <= 100
    assert metrics["ensemble/averaging/M=1/loss"] == pytest.approx(
        metrics["ensemble/ensembling/M=1/loss"], rel=1e-2
    )


def test_ensembling_says_how_many_copies_its_probe_has_seen(pictures):
    settings = dataclasses.replace(SETTINGS, ensemble_fold=2)
    metrics = protocols.ensemble(Context(pictures.encoder, pictures.dataset, settings))
    folds = [metrics[f"ensemble/ensembling/M={m}/fold"] for m in SETTINGS.num_samples]
    assert folds == [1, 2, 2]
    whole = protocols.ensemble(pictures)
    assert metrics["ensemble/ensembling/M=2/loss"] == whole["ensemble/ensembling/M=2/loss"]
    assert metrics["ensemble/ensembling/M=4/loss"] != whole["ensemble/ensembling/M=4/loss"]


def test_ensemble_takes_the_largest_m_that_is_allowed(pictures):
    settings = dataclasses.replace(SETTINGS, num_samples=(40,), ensemble_samples=2)
    metrics = protocols.ensemble(Context(pictures.encoder, pictures.dataset, settings))
    assert {name.split("/")[2] for name in metrics} == {"M=2"}


def test_knn_is_named_with_its_k(pictures):
    assert set(protocols.nearest_neighbours(pictures)) == {"knn/k=96/untransformed/accuracy"}


def test_probing_leaves_the_encoder_as_it_was(pictures):
    before = jax.tree.map(lambda leaf: np.asarray(leaf).tobytes(), pictures.encoder.variables)
    protocols.untransformed(pictures)
    after = jax.tree.map(lambda leaf: np.asarray(leaf).tobytes(), pictures.encoder.variables)
    assert before == after


def test_the_front_door_takes_any_encoder(pictures):
    metrics = protocols.evaluate(
        Plain(pictures.transform), pictures.dataset, ["untransformed", "knn"], settings=SETTINGS
    )
    inputs = np.asarray(pictures.transform.untransformed(pictures.dataset.test.images))
    assert metrics["probe/lbfgs/untransformed/accuracy"] > 80  # the class is a colour
    assert set(metrics) >= {"knn/k=96/untransformed/accuracy", "probe/selected/untransformed/l2"}
    context = Context(Plain(pictures.transform), pictures.dataset, SETTINGS)
    np.testing.assert_allclose(context.plain[1], inputs.mean((1, 2)), rtol=1e-5)


def test_the_front_door_leaves_out_what_does_not_apply(spirograph, caplog):
    names = "untransformed,invariance"
    metrics = protocols.evaluate(spirograph.encoder, spirograph.dataset, names, settings=SETTINGS)
    assert metrics == protocols.conditional_variance(spirograph)
    assert "no untransformed version" in caplog.text


def test_a_protocol_fails_alone(pictures, tmp_path, monkeypatch):
    def fail(context):
        raise ValueError("the probe is out of order")

    monkeypatch.setitem(protocols.PROTOCOLS, "average", fail)
    monkeypatch.setitem(protocols.PROTOCOLS, "alpha", lambda context: 1 / 0)
    names = ["average", "alpha", "invariance"]
    outcomes = stored(pictures, tmp_path / "results.json", names)
    assert [outcome.status for outcome in outcomes.values()] == ["failed", "failed", "measured"]
    assert outcomes["average"].reason == "the probe is out of order"
    assert outcomes["alpha"].reason == "ZeroDivisionError: division by zero"
    assert set(json.loads((tmp_path / "results.json").read_text())["protocols"]) == {"invariance"}
    with pytest.raises(ValueError, match="out of order"):
        protocols.evaluate(pictures.encoder, pictures.dataset, names, settings=SETTINGS)


def test_spirograph_says_that_it_has_no_untransformed_version(spirograph, tmp_path):
    outcomes = stored(spirograph, tmp_path / "results.json", ["untransformed", "ensemble", "knn"])
    assert {outcome.status for outcome in outcomes.values()} == {"not applicable"}
    assert "no untransformed version" in outcomes["untransformed"].reason
    assert "class" in outcomes["ensemble"].reason
    assert not list(tmp_path.iterdir()), "nothing was measured, nothing is written"


def test_the_periodic_evaluation_of_sorted_data_ends_no_run(pictures, caplog):
    dataset = dataclasses.replace(pictures.dataset, train=by_class(pictures.dataset.train))
    measure = protocols.periodic("untransformed,invariance", seed=1, limit=12)
    metrics = measure(pictures.encoder, dataset)
    assert "probe/lbfgs/untransformed/accuracy" in metrics
    assert "invariance/ratio" in metrics
    assert not caplog.messages
    one = np.zeros_like(dataset.train.labels)  # a probe needs two classes
    single = dataclasses.replace(dataset, train=Split(dataset.train.images, one))
    metrics = measure(pictures.encoder, single)
    assert set(metrics) == {name for name in metrics if name.startswith("invariance/")} != set()
    assert "untransformed: failed: all 12 labels are class 0" in caplog.text


def test_protocol_names():
    everything = ["untransformed", "average", "label_fraction", "invariance", "alpha"]
    everything += ["robustness", "ensemble", "knn"]
    assert protocols.parse(["all"]) == protocols.parse("all") == everything
    assert protocols.parse("knn,corruption") == ["knn", "corruption"]  # only by its name
    with pytest.raises(ValueError, match="no protocol 'knnn': use all, or some of untransformed"):
        protocols.parse(["knnn"])
