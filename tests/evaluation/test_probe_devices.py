"""A probe on eight devices ends where a probe on one does."""

import jax
import numpy as np
import pytest

from invclr_jax import parallel
from invclr_jax.evaluation import probes
from invclr_jax.evaluation.linear_solver import lbfgs
from tests.evaluation.test_probes import softmax_objective, square_objective

RNG = np.random.default_rng(0)
N = 203  # 26 rows on each device, three of the last one's are none
LABELS = np.arange(N) % 4
X = (2 * RNG.normal(size=(4, 6))[LABELS] + RNG.normal(size=(N, 6)) + 5) * np.logspace(-1, 1, 6)
TARGETS = RNG.normal(size=(N, 2))


@pytest.fixture
def meshes(monkeypatch):
    """The meshes that fits were divided over; rows are divided from 200 on."""
    seen, original = [], lbfgs.minimise
    monkeypatch.setattr(probes, "ROWS_TO_DIVIDE", 200)

    def watched(*arguments, mesh, **options):
        seen.append(mesh)
        return original(*arguments, mesh=mesh, **options)

    monkeypatch.setattr(lbfgs, "minimise", watched)
    return seen


@pytest.mark.usefixtures("x64")
def test_classifier(meshes):
    eight = probes.fit_classifier(X, LABELS, num_classes=4, l2=1e-3)
    assert [mesh.size for mesh in meshes] == [8]
    loss, norm = softmax_objective(X, LABELS, eight.weights, eight.bias, 1e-3)
    assert eight.loss == pytest.approx(loss, rel=1e-12)
    assert norm < 2e-12
    probes.ROWS_TO_DIVIDE = 10**9
    one = probes.fit_classifier(X, LABELS, num_classes=4, l2=1e-3)
    assert meshes[-1] is None
    np.testing.assert_allclose(eight.weights, one.weights, rtol=1e-7, atol=1e-9)
    assert eight.loss == pytest.approx(one.loss, rel=1e-13)


def test_classifier_in_single_precision(meshes):
    single = X.astype(np.float32)
    eight = probes.fit_classifier(single, LABELS, num_classes=4, l2=1e-3)
    assert eight.weights.dtype == np.float32
    probes.ROWS_TO_DIVIDE = 10**9
    one = probes.fit_classifier(single, LABELS, num_classes=4, l2=1e-3)
    assert eight.loss == pytest.approx(one.loss, rel=1e-6)
    # What follows is not tied to the mesh.
    np.testing.assert_array_equal(
        eight.predict(jax.device_put(single, jax.devices()[1])), one.predict(single)
    )


@pytest.mark.usefixtures("x64")
def test_regressor(meshes):
    found = probes.fit_regressor(X, TARGETS, l2=1e-3, method="lbfgs")
    assert [mesh.size for mesh in meshes] == [8]
    loss, norm = square_objective(X, TARGETS, found.weights, found.bias, 1e-3)
    assert found.loss == pytest.approx(loss, rel=1e-12)
    assert norm < 2e-12


def test_few_rows_stay_on_one_device(meshes):
    probes.fit_classifier(X[:199], LABELS[:199], num_classes=4, l2=1e-3)
    assert meshes == [None]


def test_rows_are_divided_and_filled_up():
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    divided = parallel.divide({"a": rows}, parallel.row_mesh(jax.devices()[:3]))["a"]
    np.testing.assert_array_equal(divided, np.pad(rows, ((0, 1), (0, 0))))
    parts = [shard.data.shape for shard in divided.addressable_shards]
    assert parts == [(2, 2)] * 3
