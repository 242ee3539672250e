"""Every protocol on a tiny run: what is measured, named, stored, and not computed twice."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from invclr_jax.checkpoint import load_encoder
from invclr_jax.config import load_data
from invclr_jax.data import Dataset
from invclr_jax.data.dataset import Split
from invclr_jax.evaluation import protocols
from invclr_jax.evaluation import results as results_module
from invclr_jax.evaluation.context import Context
from invclr_jax.evaluation.results import Results
from invclr_jax.evaluation.settings import Settings
from tests.tiny_run import make_run, tiny_config, tiny_images

SETTINGS = Settings(
    num_samples=(1, 2, 4), fractions=(0.5, 1.0), num_images=10, num_alphas=6, batch_size=48
)
SOLVER = ("iterations", "grad_norm")


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


def stored(context, path, names):
    results = Results(path, config={"model": {"width": 4}}, step=4, seed=0)
    return dict(protocols.run(context, names, results))


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


@dataclasses.dataclass(frozen=True)
class Plain:
    """An encoder of one's own: a function and a transform."""

    transform: object

    def encode_inputs(self, images):
        return images.mean((1, 2))


def test_an_encoder_without_visible_weights_is_always_computed(pictures, tmp_path, monkeypatch):
    monkeypatch.setitem(protocols.PROTOCOLS, "knn", lambda context: {"knn": 1.0})
    context = Context(Plain(pictures.transform), pictures.dataset, SETTINGS)
    for _ in range(2):
        outcome = stored(context, tmp_path / "results.json", ["knn"])["knn"]
        assert outcome.status == "measured"


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


def test_only_a_missing_plain_version_counts_as_one(pictures):
    @dataclasses.dataclass(frozen=True)
    class Broken(type(pictures.transform)):
        def untransformed(self, x):
            raise ValueError("the file of means is damaged")

    fields = {f.name: getattr(pictures.transform, f.name) for f in dataclasses.fields(Broken)}
    encoder = dataclasses.replace(pictures.encoder, transform=Broken(**fields))
    context = Context(encoder, pictures.dataset, SETTINGS)
    with pytest.raises(ValueError, match="file of means is damaged"):
        protocols.untransformed(context)


# ---- samples of sorted data ----


def by_class(split):
    order = np.argsort(split.labels, kind="stable")
    return Split(split.images[order], split.labels[order])


def test_a_limit_keeps_every_class_of_sorted_data(pictures):
    train, test = by_class(pictures.dataset.train), by_class(pictures.dataset.test)
    dataset = dataclasses.replace(pictures.dataset, train=train, test=test)
    context = Context(pictures.encoder, dataset, dataclasses.replace(SETTINGS, limit=12))
    assert np.bincount(context.train.labels).tolist() == [4, 4, 4]
    assert np.bincount(context.test.labels).tolist() == [4, 4, 4]
    assert protocols.untransformed(context)["probe/lbfgs/untransformed/accuracy"] >= 0


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
            Results(path, config={}, step=4, seed=0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_samples": (0,)}, "M must be at least 1"),
        ({"num_samples": ()}, "M must be at least 1"),
        ({"fractions": (1.5,)}, "above 0, at most 1"),
        ({"l2": -1.0}, "l2 is -1.0"),
        ({"num_alphas": 1}, "num_alphas is 1: use at least 2"),
        ({"limit": 1}, "limit is 1"),
        ({"ensemble_samples": 0}, "ensemble_samples is 0: use at least 1"),
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
