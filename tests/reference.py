"""How results are held against reference numbers."""

import numpy as np


def relative_error(actual, expected):
    """Largest error relative to the largest entry, the measure of tests/golden/README.md."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    assert actual.shape == expected.shape, f"{actual.shape} is not {expected.shape}"
    scale = np.abs(expected).max()
    return np.abs(actual - expected).max() / (scale if scale > 0 else 1.0)
