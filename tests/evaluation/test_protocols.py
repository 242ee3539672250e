"""Every protocol on a tiny run: what is measured, named, stored, and not computed twice."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from invclr_jax.checkpoint import load_encoder
from invclr_jax.data import Dataset
from invclr_jax.data.dataset import Split
from invclr_jax.evaluation import protocols
from invclr_jax.evaluation.context import Context, Settings
from invclr_jax.evaluation.results import Results
from invclr_jax.training.loop import load_data
from tests.tiny_run import make_run, tiny_config, tiny_images

SETTINGS = Settings(
    num_samples=(1, 2, 4), fractions=(0.5, 1.0), num_images=10, num_alphas=6, batch_size=48
)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    workdir, dataset = tmp_path_factory.mktemp("pictures"), tiny_images()
    make_run(workdir, tiny_config("arrays"), dataset)
    return Context(load_encoder(workdir), dataset, SETTINGS)


@pytest.fixture(scope="module")
def spirograph(tmp_path_factory):
    workdir, config = tmp_path_factory.mktemp("spirograph"), tiny_config()
    dataset = load_data(config)
    make_run(workdir, config, dataset)
    return Context(load_encoder(workdir), dataset, SETTINGS)


def test_untransformed_agrees_with_scikit_learn(pictures):
    metrics = protocols.untransformed(pictures)
    train, test = pictures.plain
    reference = LogisticRegression(C=1 / (2 * len(train) * 1e-5), tol=1e-8, max_iter=5000)
    reference.fit(train.astype(np.float64), pictures.train.labels)
    accuracy = 100 * reference.score(test.astype(np.float64), pictures.test.labels)
    found = metrics["probe/lbfgs/untransformed/accuracy"]
    assert abs(found - accuracy) <= 100 / len(test) + 1e-6
    assert metrics["probe/lbfgs/untransformed/grad_norm"] < 1e-4


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


def test_robustness_of_pictures(pictures):
    metrics = protocols.robustness(pictures)
    for strength in ("0", "0.5", "1"):
        for kind in ("kept", "refitted"):
            name = f"probe/lbfgs/robustness/strength={strength}/{kind}/accuracy"
            assert 0 <= metrics[name] <= 100
    trained = metrics["probe/lbfgs/robustness/no_shift/accuracy"]
    assert metrics["probe/lbfgs/robustness/strength=0.5/kept/accuracy"] == trained


def test_robustness_of_spirograph(spirograph):
    metrics = protocols.robustness(spirograph)
    shifts = {name.split("/")[3] for name in metrics if "kept" in name}
    assert {"h_shift=-0.5", "h_shift=+0.3", "h_widen=0.1", "background_widen=0.4"} <= shifts
    assert len(shifts) == 6 + 3 + 4 + 4
    for shift in shifts:
        kept = metrics[f"probe/ridge/robustness/{shift}/kept/mse/total"]
        assert np.isfinite(kept)


def test_ensemble_beside_averaging(pictures):
    metrics = protocols.ensemble(pictures)
    for m in SETTINGS.num_samples:
        for kind in ("averaging", "ensembling"):
            assert 0 <= metrics[f"ensemble/{kind}/M={m}/accuracy"] <= 100
    assert metrics["ensemble/averaging/M=1/loss"] == pytest.approx(
        metrics["ensemble/ensembling/M=1/loss"], rel=1e-2
    )


def test_knn_is_named_with_its_k(pictures):
    assert set(protocols.nearest_neighbours(pictures)) == {"knn/k=96/untransformed/accuracy"}


def test_probing_leaves_the_encoder_as_it_was(pictures):
    before = jax.tree.map(lambda leaf: np.asarray(leaf).tobytes(), pictures.encoder.variables)
    protocols.untransformed(pictures)
    after = jax.tree.map(lambda leaf: np.asarray(leaf).tobytes(), pictures.encoder.variables)
    assert before == after


def run_twice(context, tmp_path, names):
    path = tmp_path / "results.json"

    def run():
        results = Results(path, config=context.encoder.config, step=4, seed=0)
        return dict(protocols.evaluate(context, names, results, dataclasses.asdict(SETTINGS)))

    return run, path


def test_asking_twice_does_not_compute_twice(pictures, tmp_path, monkeypatch):
    run, path = run_twice(pictures, tmp_path, ["knn"])
    first = run()
    record = json.loads(path.read_text())
    assert record["protocols"]["knn"]["metrics"] == first["knn"]
    assert record["config"]["model"]["width"] == 4
    assert record["seed"] == 0
    assert record["code_version"]
    monkeypatch.setitem(protocols.PROTOCOLS, "knn", lambda context: 1 / 0)
    assert run() == first


def test_spirograph_says_that_it_has_no_untransformed_version(spirograph, tmp_path):
    run, path = run_twice(spirograph, tmp_path, ["untransformed", "ensemble", "knn"])
    outcome = run()
    assert "no untransformed version" in outcome["untransformed"]
    assert "class" in outcome["ensemble"]
    assert not path.exists(), "nothing was measured, nothing is written"


def test_missing_labels_get_a_sentence(pictures):
    bare = Dataset("arrays", Split(pictures.train.images), Split(pictures.test.images))
    context = Context(pictures.encoder, bare, SETTINGS)
    with pytest.raises(ValueError, match="needs labels and the data set has none"):
        protocols.untransformed(context)
    assert protocols.conditional_variance(context)["invariance/total_variance"] > 0


def test_a_data_set_without_test_split_gets_a_sentence(pictures):
    with pytest.raises(ValueError, match="has no test split"):
        Context(pictures.encoder, Dataset("arrays", pictures.train, None), SETTINGS)


def test_a_broken_result_file_gets_a_sentence(pictures, tmp_path):
    path = tmp_path / "results.json"
    for content in ("{", "[]", '{"protocols": 3}'):
        path.write_text(content)
        with pytest.raises(ValueError, match="is not a result file"):
            Results(path, config=pictures.encoder.config, step=4, seed=0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_samples": (0,)}, "M must be at least 1"),
        ({"num_samples": ()}, "M must be at least 1"),
        ({"fractions": (1.5,)}, "above 0, at most 1"),
        ({"l2": -1.0}, "l2 is -1.0"),
        ({"num_alphas": 1}, "num_alphas is 1: use at least 2"),
        ({"limit": 1}, "limit is 1"),
    ],
)
def test_nonsense_settings_get_a_sentence(options, words):
    with pytest.raises(ValueError, match=words):
        Settings(**options)


def test_protocol_names():
    assert protocols.parse(["all"]) == list(protocols.PROTOCOLS)
    with pytest.raises(ValueError, match="no protocol 'knnn': use all, or some of untransformed"):
        protocols.parse(["knnn"])


def test_shifted_draws_are_applied_as_the_shifted_transform_would(spirograph):
    """Only the distribution moves: our own `apply` on its draws is what it would render."""
    moved = spirograph.transform.shifted(0.3, ("h",))
    z = spirograph.drawn_from(moved, 3)[1]
    key = jax.random.split(spirograph.key(3))[1]
    alpha, beta = moved.sample(key, len(spirograph.test))
    images = moved.apply(spirograph.test.images, alpha, beta)
    np.testing.assert_allclose(z, spirograph.encoder.encode(images), rtol=1e-4, atol=1e-5)
    assert alpha[:, 0].min() > 0.8
