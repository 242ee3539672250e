"""Test-time shifts: probes kept and refitted, under whatever shifts a transform has."""

import jax
import numpy as np

from invclr_jax.evaluation import protocols
from invclr_jax.evaluation.context import SHIFT, Context
from invclr_jax.transforms.base import Box
from invclr_jax.transforms.base import shifts as shifted
from tests.evaluation.contexts import SETTINGS, Plain


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


class Gain:
    """A transform of one's own, without a list of shifts."""

    alpha = Box(np.array([0.5]), np.array([1.5]))

    def sample(self, key, n):
        return self.alpha.sample(key, n), None

    def apply(self, x, alpha, beta):
        return self.untransformed(x) * alpha[:, :, None, None]

    def untransformed(self, x):
        return x / np.float32(255)


def test_a_transform_of_ones_own_is_shifted_by_component(pictures):
    context = Context(Plain(Gain()), pictures.dataset, SETTINGS)
    metrics = protocols.robustness(context)
    shifts = {name.split("/")[3] for name in metrics if "kept" in name}
    step = np.sqrt(1 / 12)
    assert {f"gain_shift={step:+.3g}", f"gain_shift={-step / 2:+.3g}", "gain_spread=2"} <= shifts
    assert len(shifts) == 6
    # Features are the mean colours times alpha: the probe that was kept sees the others' alphas.
    moved = shifted(context.transform)[1][f"gain_shift={step:+.3g}"]
    alpha = moved.sample(jax.random.split(context.key(SHIFT))[1], 48)[0]
    expected = (pictures.dataset.test.images / 255).mean((1, 2)) * np.asarray(alpha)
    np.testing.assert_allclose(context.drawn_from(moved, SHIFT)[1], expected, rtol=1e-4)
