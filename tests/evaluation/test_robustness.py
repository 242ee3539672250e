"""Test-time shifts: probes kept and refitted, under whatever shifts a transform has."""

import numpy as np

from invclr_jax.evaluation import protocols


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
