"""Compact tables, warnings and the plot of an evaluation."""

import math

import numpy as np
import pytest

from invclr_jax.evaluation import plots, tables

ROBUSTNESS = {
    "probe/lbfgs/robustness/no_shift/accuracy": 80.0,
    "probe/lbfgs/robustness/no_shift/grad_norm": 1e-6,
    "probe/lbfgs/robustness/no_shift/iterations": 30.0,
    **{
        f"probe/lbfgs/robustness/strength={s:g}/{kind}/{what}": value
        for s in (0.0, 0.5)
        for kind in ("kept", "refitted")
        for what, value in (("accuracy", 60 + s), ("loss", 1.5), ("iterations", 9.0))
    },
}
AVERAGE = {
    "probe/lbfgs/M=1/accuracy": 50.0,
    "probe/lbfgs/M=1/loss": 1.25,
    "probe/lbfgs/M=8/accuracy": 60.0,
    "probe/lbfgs/M=8/loss": 1.0,
    "probe/selected/M=8/accuracy": 62.0,
    "probe/selected/M=8/l2": 0.01,
    "knn/k=200/M=8/accuracy": 55.0,
}
SPIROGRAPH = {
    f"probe/ridge/robustness/{shift}/{kind}/mse/{factor}": 0.5
    for shift in ("h_shift=-0.1", "h_shift=+0.1", "h_widen=0.1")
    for kind in ("kept", "refitted")
    for factor in ("m", "b", "total")
}


def test_strength_by_kept_and_refitted():
    text = tables.table(ROBUSTNESS, 100)
    lines = [line.split("  ") for line in text.splitlines()]
    header, *rows = ([cell.strip() for cell in line if cell.strip()] for line in lines)
    assert header == ["kept accuracy", "kept loss", "refitted accuracy", "refitted loss"]
    assert rows[0] == ["no_shift", "80.00 ± 4.00"]
    assert rows[1] == ["strength=0", "60.00 ± 4.90", "1.5", "60.00 ± 4.90", "1.5"]
    assert len(rows) == 3
    assert len({len(line) for line in text.splitlines()[2:]}) == 1, "columns are aligned"


def test_m_by_accuracy_and_the_other_probes_beside():
    cells = tables.grid(AVERAGE)
    assert list(cells) == ["M=1", "M=8"]
    assert cells["M=1"] == {"accuracy": 50.0, "loss": 1.25}
    others = {"selected accuracy": 62.0, "selected l2": 0.01, "knn accuracy": 55.0}
    assert cells["M=8"] == {"accuracy": 60.0, "loss": 1.0} | others


def test_shifts_of_spirograph_show_the_sum_of_the_factors():
    cells = tables.grid(SPIROGRAPH)
    assert list(cells) == ["h_shift=-0.1", "h_shift=+0.1", "h_widen=0.1"]
    assert set(cells["h_widen=0.1"]) == {"kept total", "refitted total"}


def test_severities_stand_beside_each_other():
    metrics = {
        f"corruption/{kind}/{name}/severity={s}/accuracy": 50.0
        for kind in ("untransformed", "M=10")
        for name in ("fog", "snow")
        for s in (1, 5)
    } | {"corruption/M=10/clean/accuracy": 90.0, "corruption/M=10/relative": 0.5}
    header, *rows = tables.table(metrics, 100).splitlines()
    assert header.split() == ["severity=1", "severity=5", "accuracy", "relative"]
    assert rows[0].split() == ["untransformed/fog", "50.00", "±", "5.00", "50.00", "±", "5.00"]
    assert rows[-2].split() == ["M=10/clean", "90.00", "±", "3.00"]
    assert rows[-1].split() == ["M=10", "0.5"]


def test_components_of_alpha_and_single_rows():
    alpha = {f"alpha/{how}/{c}": 1.0 for how in ("ridge/mse", "reference") for c in ("mean", "h")}
    assert tables.grid(alpha) == {how: {"mean": 1.0, "h": 1.0} for how in ("ridge", "reference")}
    text = tables.table({"invariance/ratio": 0.125, "invariance/total_variance": 0.5}, 10)
    assert text.split() == ["ratio", "0.125", "total_variance", "0.5"]
    assert len(text.splitlines()) == 2
    single = tables.table({"probe/lbfgs/M=40/loss": 0.5}, 10)
    assert single.split() == ["M=40", "loss", "0.5"]
    factors = {f"probe/ridge/M={m}/mse/{f}": 1.0 for m in (1, 2) for f in ("m", "total")}
    assert tables.grid(factors) == {f"M={m}": {"m": 1.0, "total": 1.0} for m in (1, 2)}


def test_the_error_of_an_accuracy_is_binomial():
    draws = np.random.default_rng(0).binomial(400, 0.3, 20_000) / 4
    assert tables.binomial_error(30.0, 400) == pytest.approx(draws.std(), rel=0.02)
    assert tables.binomial_error(100.0, 400) == 0


@pytest.mark.parametrize(
    ("norm", "iterations", "warned"),
    [(1e-6, 40.0, False), (1e-6, 1000.0, True), (0.1, 40.0, True), (math.nan, 3.0, True)],
)
def test_fits_that_did_not_converge_are_named(norm, iterations, warned):
    prefix = "probe/lbfgs/M=5"
    metrics = {f"{prefix}/grad_norm": norm, f"{prefix}/iterations": iterations, "loss": 9.0}
    sentences = tables.warnings(metrics)
    assert len(sentences) == warned
    assert all("probe/lbfgs/M=5 did not converge" in sentence for sentence in sentences)


def test_curves_of_the_plot():
    lines = plots.curves(tables.grid(AVERAGE))
    assert lines == {"M": [(1.0, 50.0), (8.0, 60.0)]}
    lines = plots.curves(tables.grid(ROBUSTNESS))
    assert lines["strength kept"] == [(0.0, 60.0), (0.5, 60.5)]
    lines = plots.curves(tables.grid(SPIROGRAPH))
    assert lines["h_shift refitted"] == [(-0.1, 0.5), (0.1, 0.5)]
    assert not plots.curves(tables.grid({"invariance/ratio": 0.125}))


def test_the_picture_has_a_panel_for_each_protocol_with_curves():
    one = plots.picture({"average": AVERAGE, "invariance": {"invariance/ratio": 0.5}})
    two = plots.picture({"average": AVERAGE, "robustness": ROBUSTNESS})
    assert one.startswith(b"\x89PNG")
    widths = [int.from_bytes(png[16:20], "big") for png in (one, two)]
    assert widths == [540, 1080]
    assert plots.picture({"invariance": {"invariance/ratio": 0.5}}) is None
