"""Intervals of paired factors against SciPy."""

import numpy as np
import pytest
import scipy.stats

from experiments.figures import paired
from experiments.records import Records, Stat


def records_of(values, name):
    return [
        {"dataset": "spirograph", "name": name, "seed": seed, "metrics": {"invariance/ratio": v}}
        for seed, v in enumerate(values)
    ]


@pytest.mark.parametrize("seeds", [2, 5, 12])
def test_interval_is_that_of_the_paired_test(seeds):
    plain, other = np.random.default_rng(0).uniform(1, 2, (2, seeds))
    found = Records(records_of(plain, "none") + records_of(other, "unit-0.01"), "cpu")
    factor = found.factor("spirograph", "unit-0.01", "invariance/ratio")
    test = scipy.stats.ttest_rel(np.log(other), np.log(plain))
    low, high = test.confidence_interval(0.95)
    np.testing.assert_allclose(paired.interval(factor), np.exp([low, high]), rtol=1e-9)
    assert paired.interval(factor)[0] < factor.mean < paired.interval(factor)[1]


@pytest.mark.parametrize(
    ("factor", "text"),
    [
        (Stat(0.5, 0.01, 3), "0.50 (0.46–0.54) ↓"),
        (Stat(2.0, 0.1, 3), "2.00 (1.61–2.48) ↑"),
        (Stat(1.1, 0.1, 3), "1.10 (0.74–1.63)"),
        (Stat(20.0, 1.0, 3), "20 (16–25) ↑"),
        (Stat(1.1), "–"),
        (None, "–"),
    ],
)
def test_an_arrow_marks_what_is_more_than_chance(factor, text):
    assert paired.verdict(factor) == text


def test_a_run_is_compared_with_no_penalty_on_the_same_pictures(monkeypatch):
    monkeypatch.setattr(paired, "MEASURES", paired.MEASURES[:1])
    assert paired.base("finite-relative-1") == paired.base("ramp-unit-0.01") == "none"
    assert paired.base("row-unit-0.01") == "row-none"
    rows = records_of([1.0, 2, 4], "row-none") + records_of([2.0, 4, 8], "row-unit-0.01")
    rows += records_of([3.0, 3, 3], "none") + records_of([1.0, 2], "unit-0.01")
    (table,) = paired.tables(Records(rows, "cpu"))
    assert table.rows == [["unit, λ 0.01, row", "3", "2.00 (2.00–2.00) ↑"]]
