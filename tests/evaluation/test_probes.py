"""Probes against golden numbers, scikit-learn, and what they promise."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge

from invclr_jax.evaluation import probes
from invclr_jax.evaluation.linear_solver import lbfgs
from invclr_jax.evaluation.metrics import accuracy, cross_entropy, squared_error
from tests.reference import relative_error

LIMIT = {"float64": 1e-10, "float32": 1e-5}


def tags(stored, kind):
    """The penalties in a golden file, such as ("reg1e-5", 1e-5)."""
    found = [re.fullmatch(rf"{kind}_(reg([^_]+))_W", name) for name in stored]
    return [(match[1], float(match[2])) for match in found if match]


def softmax_objective(x, labels, weights, bias, l2):
    """Loss and gradient norm in float64 NumPy."""
    weights, bias = np.asarray(weights, np.float64), np.asarray(bias, np.float64)
    scores = x @ weights + bias
    scores = scores - scores.max(1, keepdims=True)
    log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    loss = -log_p[np.arange(len(x)), labels].mean() + l2 * (weights**2).sum()
    residual = (np.exp(log_p) - np.eye(len(bias))[labels]) / len(x)
    gradient = np.vstack([x.T @ residual + 2 * l2 * weights, residual.sum(0)])
    return loss, np.linalg.norm(gradient)


def square_objective(x, y, weights, bias, l2):
    weights, bias = np.asarray(weights, np.float64), np.asarray(bias, np.float64)
    residual = x @ weights + bias - y
    gradient = np.vstack([x.T @ residual, residual.sum(0)]) * 2 / y.size
    gradient[:-1] += 2 * l2 * weights
    return (residual**2).mean() + l2 * (weights**2).sum(), np.linalg.norm(gradient)


def test_classifier_is_golden(golden, precision):
    stored = golden("probes")
    limit = LIMIT[precision.name]
    assert len(tags(stored, "clf")) == 2
    for tag, l2 in tags(stored, "clf"):
        name = f"clf_{tag}"
        fit = probes.fit_classifier(
            stored["X"], stored["labels"], num_classes=stored[f"{name}_W"].shape[1], l2=l2
        )
        bias = np.asarray(fit.bias, np.float64)
        assert fit.weights.dtype == precision
        assert relative_error(fit.weights, stored[f"{name}_W"]) < limit
        assert relative_error(bias - bias.mean(), stored[f"{name}_b"]) < limit
        assert relative_error(fit.loss, stored[f"{name}_loss"]) < limit
        for part in ("", "_test"):
            x, labels = stored[f"X{part}"], stored[f"labels{part}"]
            entropy = cross_entropy(fit.scores(x), labels)
            assert relative_error(entropy, stored[f"{name}{part or '_train'}_ce"]) < limit
            expected = stored[f"{name}{part or '_train'}_accuracy"]
            assert accuracy(fit.predict(x), labels) == pytest.approx(float(expected))

        loss, norm = softmax_objective(stored["X"], stored["labels"], fit.weights, fit.bias, l2)
        torch = f"{name}_torch_f{8 * precision.itemsize}"
        assert loss - stored[f"{name}_loss"] <= stored[f"{torch}_excess"]
        assert norm < stored[f"{torch}_grad_norm"]
        assert fit.grad_norm == pytest.approx(norm, rel=0.5, abs=1e-7)
        assert 0 < fit.iterations < stored[f"{torch}_iterations"]


@pytest.mark.parametrize("method", ["closed_form", "lbfgs"])
def test_regressor_is_golden(golden, precision, method):
    stored = golden("probes")
    limit = LIMIT[precision.name]
    assert len(tags(stored, "reg")) == 2
    for tag, l2 in tags(stored, "reg"):
        name = f"reg_{tag}"
        fit = probes.fit_regressor(stored["X"], stored["Y"], l2=l2, method=method)
        assert fit.weights.dtype == precision
        assert relative_error(fit.weights, stored[f"{name}_W"]) < limit
        assert relative_error(fit.bias, stored[f"{name}_b"]) < limit
        assert relative_error(fit.loss, stored[f"{name}_loss"]) < limit
        train = squared_error(fit.predict(stored["X"]), stored["Y"])
        assert relative_error(train.mean(), stored[f"{name}_train_mse"]) < limit
        test = squared_error(fit.predict(stored["X_test"]), stored["Y_test"])
        assert relative_error(test, stored[f"{name}_test_mse_per_output"]) < limit
        assert relative_error(test.mean(), stored[f"{name}_test_mse"]) < limit

        loss, norm = square_objective(stored["X"], stored["Y"], fit.weights, fit.bias, l2)
        torch = f"{name}_torch_f{8 * precision.itemsize}"
        assert loss - stored[f"{name}_loss"] <= stored[f"{torch}_excess"]
        assert norm < stored[f"{torch}_grad_norm"]
        assert fit.iterations == 0 if method == "closed_form" else fit.iterations >= 1


def test_scikit_learn_agrees(golden, x64):
    stored = golden("probes")
    x, labels, y, l2 = stored["X"], stored["labels"], stored["Y"], 1e-3
    fit = probes.fit_classifier(x, labels, num_classes=int(labels.max()) + 1, l2=l2)
    theirs = LogisticRegression(C=1 / (2 * len(x) * l2), tol=1e-10, max_iter=10_000).fit(x, labels)
    assert relative_error(fit.weights, theirs.coef_.T) < 1e-5
    assert relative_error(fit.log_probabilities(x), theirs.predict_log_proba(x)) < 1e-5

    theirs = Ridge(alpha=y.size * l2).fit(x, y)
    for method in ("closed_form", "lbfgs"):
        fit = probes.fit_regressor(x, y, l2=l2, method=method)
        assert relative_error(fit.weights, theirs.coef_.T) < 1e-9
        assert relative_error(fit.predict(x), theirs.predict(x)) < 1e-9


@settings(deadline=None, max_examples=10)
@given(shift=st.floats(-10, 10), scale=st.floats(0.1, 10), turn=st.integers(1, 3))
def test_classifier_properties(golden, shift, scale, turn):
    """A shift of the features moves only b, a scale is undone by l2, classes are but names."""
    stored = golden("probes")
    x, labels = stored["X"], stored["labels"]
    classes = int(labels.max()) + 1
    with jax.enable_x64(True):
        fit = probes.fit_classifier(x, labels, num_classes=classes, l2=1e-2)
        moved = probes.fit_classifier(x + shift, labels, num_classes=classes, l2=1e-2)
        scaled = probes.fit_classifier(x * scale, labels, num_classes=classes, l2=1e-2 * scale**2)
        renamed = probes.fit_classifier(x, (labels + turn) % classes, num_classes=classes, l2=1e-2)
    assert relative_error(moved.weights, fit.weights) < 1e-8
    assert relative_error(np.asarray(scaled.weights) * scale, fit.weights) < 1e-8
    assert relative_error(np.roll(renamed.weights, -turn, axis=1), fit.weights) < 1e-8


def clusters(seed=0, n=90, f=6, classes=3):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes)
    x = rng.normal(size=(classes, f))[labels] + rng.normal(size=(n, f))
    return np.maximum(x, 0) * np.logspace(-1, 1, f), labels


def test_warm_start_and_tolerance():
    x, labels = clusters()
    loose = probes.fit_classifier(x, labels, num_classes=4, l2=1e-2, tolerance=1e-2)
    tight = probes.fit_classifier(x, labels, num_classes=4, l2=1e-2, init=loose)
    again = probes.fit_classifier(x, labels, num_classes=4, l2=1e-2, tolerance=1e-5, init=tight)
    assert loose.grad_norm <= 1e-2
    assert loose.iterations < tight.iterations
    assert again.iterations == 0
    stopped = probes.fit_classifier(x, labels, num_classes=4, l2=1e-2, max_iterations=2)
    assert stopped.iterations == 2


def test_one_compilation_serves_every_l2():
    x, labels = clusters()
    probes.fit_classifier(x, labels, num_classes=4, l2=1e-2)
    before = lbfgs._minimise._cache_size()
    probes.fit_classifier(x, labels[::-1].copy(), num_classes=4, l2=1e-4, tolerance=1e-4)
    assert lbfgs._minimise._cache_size() == before


def test_classes_without_samples_are_never_predicted():
    x, labels = clusters()
    fit = probes.fit_classifier(x, labels, num_classes=4, l2=1e-2)
    assert fit.weights.shape == (6, 4)
    assert set(np.unique(fit.predict(x))) <= {0, 1, 2}
    assert np.isfinite(fit.loss)


def test_jax_arrays_and_numpy_arrays_are_the_same():
    x, labels = clusters()
    fit = probes.fit_classifier(x, labels, num_classes=4, l2=1e-2)
    other = probes.fit_classifier(
        jnp.asarray(x), jnp.asarray(labels, jnp.uint8), num_classes=4, l2=1e-2
    )
    np.testing.assert_array_equal(fit.weights, other.weights)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("method", ["closed_form", "lbfgs"])
def test_regression_of_collinear_and_constant_features(method):
    """Least squares without a penalty is still found; the closed form takes least norm."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 4))
    x = np.concatenate([x, x[:, :1] + x[:, 1:2], np.ones((50, 1))], axis=1)
    y = x @ rng.normal(size=(6, 2)) + 0.1 * rng.normal(size=(50, 2))
    fit = probes.fit_regressor(x, y, l2=0.0, method=method)
    centred = x - x.mean(0)
    expected = np.linalg.lstsq(centred, y - y.mean(0), rcond=1e-10)[0]
    best = ((centred @ expected + y.mean(0) - y) ** 2).mean()
    assert fit.loss == pytest.approx(best, rel=1e-9)
    if method == "closed_form":
        assert relative_error(fit.weights, expected) < 1e-8


def test_closed_form_keeps_float32_features_of_unequal_scale():
    """Normal equations in float32 would lose the small feature and the tiny penalty."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(400, 3)) * [1e3, 1.0, 1e-3] + [1e4, 0, 0]).astype(np.float32)
    y = (x.astype(np.float64) - [1e4, 0, 0]) @ np.array([[1e-3], [1.0], [1e3]])
    fit = probes.fit_regressor(x, y.astype(np.float32), l2=1e-13)
    assert relative_error(fit.weights, [[1e-3], [1.0], [1e3]]) < 1e-5
    assert relative_error(fit.weights[:2], [[1e-3], [1.0]]) < 1e-5


def bad_input():
    x, labels = clusters()
    y = x[:, :2]
    nan = np.where(np.arange(x.size).reshape(x.shape) == 5, np.nan, x)

    def classify(x=x, labels=labels, num_classes=3, l2=1e-3, **options):
        return probes.fit_classifier(x, labels, num_classes=num_classes, l2=l2, **options)

    def regress(x=x, y=y, l2=1e-3, **options):
        return probes.fit_regressor(x, y, l2=l2, **options)

    other = probes.Classifier(jnp.zeros((5, 3)), jnp.zeros(3), 0.0, 0.0, 0, 0.0)
    return {
        "1 NaN or infinite": lambda: classify(nan),
        "all 90 labels are class 2": lambda: classify(labels=np.full(90, 2)),
        "outside 0..1": lambda: classify(num_classes=2),
        "run from -1 to 2": lambda: classify(labels=np.where(labels == 0, -1, labels)),
        "labels are missing": lambda: classify(labels=None),
        r"labels of shape \(90,\), got \(89,\)": lambda: classify(labels=labels[1:]),
        "must be integers": lambda: classify(labels=labels * 1.0),
        "num_classes is 1": lambda: classify(labels=labels * 0, num_classes=1),
        "features must be a matrix": lambda: classify(x[:, 0]),
        "got \\(0, 6\\)": lambda: classify(x[:0], labels[:0]),
        "l2 is -1": lambda: classify(l2=-1.0),
        "l2 is nan": lambda: regress(l2=float("nan")),
        "init has weights \\(5, 3\\)": lambda: classify(init=other),
        "targets must be a matrix": lambda: regress(y=y[:, 0]),
        "targets must have 90 rows": lambda: regress(y=y[1:]),
        "targets hold 3 NaN": lambda: regress(
            y=np.where(np.arange(180).reshape(90, 2) < 3, np.nan, y)
        ),
        "no method 'sgd'": lambda: regress(method="sgd"),
        "fitted to 5 features": lambda: other.predict(x),
    }


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize("sentence", bad_input())
def test_bad_input_is_a_sentence(sentence):
    with pytest.raises(ValueError, match=sentence):
        bad_input()[sentence]()
