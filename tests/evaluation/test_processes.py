"""Features, probe and neighbours of two processes over the loopback are those of one."""

import numpy as np

from tests.training.test_distributed import start


def test_two_processes_equal_one(tmp_path):
    start("tests.evaluation.worker", [str(tmp_path / "one")], 1, 4)
    start("tests.evaluation.worker", [str(tmp_path / "two")], 2, 2)
    one, first, second = (np.load(tmp_path / f"{name}.npz") for name in ("one0", "two0", "two1"))
    for name in ("one", "three", "near"):
        np.testing.assert_array_equal(first[name], one[name])
    for name in one.files:
        np.testing.assert_array_equal(second[name], first[name])
        np.testing.assert_allclose(first[name], one[name], rtol=1e-4, atol=1e-5)
    assert np.abs(one["one"] - one["three"]).max() > 0.01
