"""kNN against NumPy and scikit-learn."""

import jax
import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from invclr_jax.evaluation import knn, passes

RNG = np.random.default_rng(0)
LABELS = np.arange(120) % 4
CENTRES = RNG.normal(size=(4, 5))
TRAIN = CENTRES[LABELS] + RNG.normal(size=(120, 5))
TEST = CENTRES[np.arange(150) % 4] + RNG.normal(size=(150, 5))  # more than one slice of rows


def unit(z):
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def by_hand(train, labels, test, k, temperature):
    similarity = unit(test) @ unit(train).T
    votes = np.zeros((len(test), labels.max() + 1))
    for row, values in enumerate(similarity):
        for index in np.argsort(-values)[:k]:
            votes[row, labels[index]] += np.exp(values[index] / temperature)
    return votes.argmax(1)


@pytest.mark.parametrize(("k", "temperature"), [(1, 0.1), (10, 0.1), (10, 2.0), (200, 0.1)])
def test_the_vote_is_the_written_one(k, temperature):
    with jax.enable_x64(True):
        found = knn.knn_predict(TRAIN, LABELS, TEST, num_classes=4, k=k, temperature=temperature)
    np.testing.assert_array_equal(found, by_hand(TRAIN, LABELS, TEST, k, temperature))


def test_eight_devices_decide_as_one(monkeypatch):
    monkeypatch.setattr(knn, "BATCH", 16)  # 150 rows: ten batches
    used, original = [], passes.on_mesh

    def watched(*arguments, mesh, **options):
        used.append(mesh.size)
        return original(*arguments, mesh=mesh, **options)

    monkeypatch.setattr(passes, "on_mesh", watched)
    eight = knn.knn_predict(TRAIN, LABELS, TEST, num_classes=4, k=20)
    monkeypatch.setattr(jax, "local_device_count", lambda: 1)
    one = knn.knn_predict(TRAIN, LABELS, TEST, num_classes=4, k=20)
    assert used == [8, 8] + [1] * 10
    np.testing.assert_array_equal(eight, one)


def test_scikit_learn_agrees():
    def weights(distances):
        return np.exp((1 - distances) / 0.1)

    theirs = KNeighborsClassifier(20, metric="cosine", weights=weights).fit(TRAIN, LABELS)
    found = knn.knn_predict(TRAIN, LABELS, TEST, num_classes=4, k=20)
    assert np.mean(found == theirs.predict(TEST)) > 0.99


def test_low_temperature_lets_the_nearest_decide():
    cold = knn.knn_predict(TRAIN, LABELS, TEST, num_classes=4, k=50, temperature=1e-6)
    nearest = knn.knn_predict(TRAIN, LABELS, TEST, num_classes=4, k=1)
    np.testing.assert_array_equal(cold, nearest)


def test_length_does_not_matter_and_zero_is_no_division():
    scale = RNG.uniform(0.1, 10, size=(120, 1))
    expected = knn.knn_predict(TRAIN, LABELS, TEST, num_classes=4, k=10)
    found = knn.knn_predict(TRAIN * scale, LABELS, 3 * TEST, num_classes=4, k=10)
    assert np.mean(found == expected) > 0.99
    zero = knn.knn_predict(TRAIN * 0, LABELS, TEST, num_classes=4, k=10)
    assert set(np.unique(zero)) <= {0, 1, 2, 3}


@pytest.mark.usefixtures("no_shape_checks")
def test_bad_input_is_a_sentence():
    def run(train=TRAIN, labels=LABELS, test=TEST, **options):
        return knn.knn_predict(train, labels, test, **{"num_classes": 4, "k": 10} | options)

    with pytest.raises(ValueError, match="k is 0"):
        run(k=0)
    with pytest.raises(ValueError, match="temperature is 0"):
        run(temperature=0.0)
    with pytest.raises(ValueError, match="labels are missing"):
        run(labels=None)
    with pytest.raises(ValueError, match=r"outside 0\.\.2"):
        run(num_classes=3)
    with pytest.raises(ValueError, match="5 columns, test 4"):
        run(test=TEST[:, :4])
    with pytest.raises(ValueError, match="test features hold 150 NaN"):
        run(test=np.where(np.arange(5) == 2, np.nan, TEST))
