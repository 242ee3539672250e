"""Ensembling beside feature averaging, and Theorem 1."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.evaluation import ensemble, probes
from invclr_jax.evaluation.metrics import accuracy, cross_entropy, squared_error

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


def test_probabilities_are_averaged(classifier):
    found = ensemble.ensemble_log_probabilities(classifier, TEST)
    scores = TEST @ np.asarray(classifier.weights) + np.asarray(classifier.bias)
    p = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(np.exp(found), p.mean(1), rtol=1e-5)
    single = ensemble.ensemble_log_probabilities(classifier, TEST[:, :1])
    np.testing.assert_allclose(single, classifier.log_probabilities(TEST[:, 0]), atol=1e-5)


def test_compare(classifier):
    found = ensemble.compare(TRAIN, LABELS, TEST, TEST_LABELS, num_classes=3, l2=1e-3, nums=(1, 4))
    assert list(found) == [1, 4]
    for kind in (0, 1):  # with one transformation both are the same classifier
        np.testing.assert_allclose(found[1].averaging[kind], found[1].ensembling[kind], rtol=1e-3)
    averaged = probes.fit_classifier(TRAIN.mean(1), LABELS, num_classes=3, l2=1e-3)
    scores = averaged.scores(TEST.mean(1))
    expected = accuracy(averaged.predict(TEST.mean(1)), TEST_LABELS)
    assert found[4].averaging.accuracy == pytest.approx(expected)
    expected = float(cross_entropy(scores, TEST_LABELS))
    assert found[4].averaging.loss == pytest.approx(expected, rel=1e-3)
    log_p = ensemble.ensemble_log_probabilities(classifier, TEST)
    expected = float(cross_entropy(log_p, TEST_LABELS))
    assert found[4].ensembling.loss == pytest.approx(expected, rel=1e-3)


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
def test_bad_input_is_a_sentence(classifier):
    def compare(train=TRAIN, labels=LABELS, nums=(1,)):
        options = {"num_classes": 3, "l2": 1e-3, "nums": nums}
        return ensemble.compare(train, labels, TEST, TEST_LABELS, **options)

    with pytest.raises(ValueError, match="M is 0"):
        compare(nums=(0,))
    with pytest.raises(ValueError, match="M = 5 needs as many"):
        compare(nums=(5,))
    with pytest.raises(ValueError, match="labels are missing"):
        compare(labels=None)
    with pytest.raises(ValueError, match="got \\(60, 4\\)"):
        compare(train=TRAIN[:, 0])
    with pytest.raises(ValueError, match="labels are missing"):
        ensemble.fit_augmented(TRAIN, None, num_classes=3, l2=1e-3)
    with pytest.raises(ValueError, match="NaN"):
        ensemble.fit_augmented(TRAIN * np.nan, LABELS, num_classes=3, l2=1e-3)
