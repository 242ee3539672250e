"""Ensembling beside feature averaging, and Theorem 1."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.evaluation import ensemble, features, probes
from invclr_jax.evaluation.metrics import accuracy, cross_entropy, squared_error
from invclr_jax.transforms.base import Box

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(3, 4))


def samples(labels, m=4, noise=1.0):
    image = CENTRES[labels] + 0.5 * RNG.normal(size=(len(labels), 4))
    z = image[:, None] + noise * RNG.normal(size=(len(labels), m, 4))
    return z.astype(np.float32)


LABELS, TEST_LABELS = np.arange(60) % 3, np.arange(45) % 3
TRAIN, TEST = samples(LABELS), samples(TEST_LABELS)


@pytest.fixture(scope="module")
def classifier():
    return ensemble.fit_augmented(TRAIN, LABELS, num_classes=3, l2=1e-3)


def test_the_augmented_fit_sees_every_copy(classifier):
    copies = TRAIN.transpose(1, 0, 2).reshape(-1, 4)  # in another order: the fit is a sum
    other = probes.fit_classifier(copies, np.tile(LABELS, 4), num_classes=3, l2=1e-3)
    np.testing.assert_allclose(classifier.weights, other.weights, atol=1e-4)


def encode(images):
    return jnp.tanh(images[:, 0, 0]) * jnp.array([1.0, 2.0, 3.0, 4.0])[None]


@dataclasses.dataclass(frozen=True, eq=False)
class Shifted:
    """Shifts the features that stand in for pictures."""

    amount: float = 1.0
    alpha: Box = dataclasses.field(default_factory=lambda: Box(np.zeros(1), np.ones(1)))

    def sample(self, key, n):
        return jax.random.uniform(key, (n, 1)), None

    def untransformed(self, x):
        return x[:, None, None]

    def apply(self, x, alpha, beta):
        return x[:, None, None] + self.amount * alpha[:, None, None]


X = RNG.normal(size=(9, 4)).astype(np.float32)
KEY = jax.random.key(2)


@pytest.mark.parametrize("batch_size", [2, 50])
def test_probabilities_are_averaged(classifier, batch_size):
    """Against features that are all kept, the Ms in one pass and with a classifier each."""
    other = dataclasses.replace(classifier, weights=2 * classifier.weights)
    transform, options = Shifted(), {"batch_size": batch_size}
    found = ensemble.log_probabilities(
        encode, transform, X, KEY, {1: classifier, 5: other, 7: classifier}, **options
    )
    z, _ = features.transformed_features(encode, transform, X, KEY, 7, **options)
    assert np.ptp(z, axis=1).min() > 0
    for m, probe in ((1, classifier), (5, other), (7, classifier)):
        scores = z[:, :m] @ np.asarray(probe.weights) + np.asarray(probe.bias)
        p = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        np.testing.assert_allclose(np.exp(found[m]), p.mean(1), rtol=1e-5)


def test_improbable_classes_stay_finite(classifier):
    far = dataclasses.replace(classifier, weights=1000 * classifier.weights)
    found = ensemble.log_probabilities(encode, Shifted(), X, KEY, {3: far})
    assert found[3].min() < -200  # exp of it is 0 in float32
    assert np.isfinite(found[3]).all()


def test_classifiers_are_those_of_the_first_transformations_as_far_as_there_are_any(classifier):
    found = ensemble.fit_each(TRAIN, LABELS, nums=[1, 4, 9], num_classes=3, l2=1e-3)
    assert list(found) == [1, 4, 9]
    assert found[9] is found[4]
    np.testing.assert_allclose(found[4].weights, classifier.weights, atol=1e-4)
    single = probes.fit_classifier(TRAIN[:, 0], LABELS, num_classes=3, l2=1e-3)
    np.testing.assert_allclose(found[1].weights, single.weights, atol=1e-4)
    beyond = ensemble.fit_each(TRAIN, LABELS, nums=[9], num_classes=3, l2=1e-3)
    np.testing.assert_allclose(beyond[9].weights, classifier.weights, atol=1e-4)


def test_large_copies_go_through_a_file(classifier):
    whole = np.concatenate([TRAIN, TRAIN], axis=1)
    options = {"num_classes": 3, "l2": 1e-3}
    found = ensemble.fit_augmented(whole[:, :4], LABELS, memory=0, **options)
    np.testing.assert_array_equal(
        found.weights, ensemble.fit_augmented(TRAIN, LABELS, **options).weights
    )


def test_compare(classifier):
    averages = {m: (TRAIN[:, :m].mean(1), TEST[:, :m].mean(1)) for m in (1, 4)}
    logs = {m: classifier.log_probabilities(TEST[:, 0]) for m in (1, 4)}
    options = {"num_classes": 3, "l2": 1e-3}
    found = ensemble.compare(averages, logs, LABELS, TEST_LABELS, **options)
    assert list(found) == [1, 4]
    for m, (train, test) in averages.items():
        averaged = probes.fit_classifier(train, LABELS, **options)
        expected = accuracy(averaged.predict(test), TEST_LABELS)
        assert found[m].averaging.accuracy == pytest.approx(expected)
        expected = float(cross_entropy(averaged.scores(test), TEST_LABELS))
        assert found[m].averaging.loss == pytest.approx(expected, rel=1e-3)
        expected = float(cross_entropy(logs[m], TEST_LABELS))
        assert found[m].ensembling.loss == pytest.approx(expected, rel=1e-6)


@pytest.mark.usefixtures("x64")
def test_theorem_1():
    """A fixed linear model's expected loss does not rise with M.

    Exactly, over all choices of M of 6 transformations, as in the proof.
    """
    rng = np.random.default_rng(1)
    z = rng.normal(size=(20, 6, 5)) * 3
    labels, targets = rng.integers(0, 4, size=20), rng.normal(size=(20, 4))
    weights, bias = rng.normal(size=(5, 4)), rng.normal(size=4)
    fixed = probes.Probe(jnp.asarray(weights), jnp.asarray(bias), 0.0, 0.0, 0, 0.0)
    losses = {
        "softmax": lambda z: cross_entropy(fixed.scores(z), labels),
        "square": lambda z: squared_error(fixed.scores(z), targets).mean(),
    }
    for name, loss in losses.items():
        loss = jax.jit(loss)
        expected = [
            np.mean([loss(z[:, c].mean(1)) for c in itertools.combinations(range(6), m)])
            for m in range(1, 7)
        ]
        assert (np.diff(expected) < 0).all(), name


@pytest.mark.usefixtures("no_shape_checks")
def test_bad_input_is_a_sentence():
    def fit(features=TRAIN, labels=LABELS):
        return ensemble.fit_augmented(features, labels, num_classes=3, l2=1e-3)

    with pytest.raises(ValueError, match="got \\(60, 4\\)"):
        fit(TRAIN[:, 0])
    with pytest.raises(ValueError, match="labels are missing"):
        fit(labels=None)
    with pytest.raises(ValueError, match="NaN"):
        fit(TRAIN * np.nan)
