"""Both contenders of the convolution benchmark compute the same."""

import numpy as np
import pytest

pytest.importorskip("torch")

from benchmarks import convolutions
from tests.reference import relative_error


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("role", convolutions.ROLES)
def test_both_compute_the_same(role, stride):
    rng = np.random.default_rng(0)
    shapes = ((2, 8, 8, 3), (3, 3, 3, 4), (2, 8 // stride, 8 // stride, 4))
    x, w, y = (rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
    found = convolutions.ours(role, stride, x, w, y)()
    theirs = convolutions.pytorch(role, stride, x, w, y)()
    if role != "forward":
        theirs = next(gradient for gradient in theirs if gradient is not None)
    order = (2, 3, 1, 0) if role == "gradient in the kernel" else (0, 2, 3, 1)
    assert relative_error(found, theirs.permute(order).numpy()) < 1e-5
