"""The rule's intervals against SciPy, and its table against hand-made records."""

import numpy as np
import pytest
import scipy.stats

from experiments.figures import canonical
from experiments.records import Records
from experiments.runs import Run
from tests.experiments.synthetic import record

RUNS = ("none", "finite-canonical-1", "batch128-none", "batch128-finite-canonical-1")


@pytest.fixture(scope="module")
def found():
    made = [record(Run("cpu", "spirograph", name), seed) for name in RUNS for seed in range(4)]
    return Records([r for r in made if (r["name"], r["seed"]) != ("none", 3)], "cpu")


def values(found, name, metric):
    return np.array([r["metrics"][metric] for r in found.of("spirograph", name)])


def test_interval_is_that_of_the_paired_test():
    one, other = np.random.default_rng(0).uniform(1, 2, (2, 5))
    test = scipy.stats.ttest_rel(one, other)
    mean, *ends = canonical.interval(list(one - other))
    np.testing.assert_allclose(ends, test.confidence_interval(0.95), rtol=1e-12)
    assert mean == pytest.approx((one - other).mean())


def test_errors_are_compared_by_quotients_of_seeds_that_both_have(found):
    metric = canonical.JUDGED["error, M=50"]
    both = [found.of("spirograph", name) for name in ("finite-canonical-1", "none")]
    logs = canonical.paired(both, metric, np.log)
    one, other = (values(found, name, metric) for name in ("finite-canonical-1", "none"))
    np.testing.assert_allclose(logs, np.log(one[:3] / other), rtol=1e-12)


def test_each_batch_size_is_compared_with_its_own(found):
    table, *_ = canonical.tables(found)
    assert [(row[0], row[1]) for row in table.rows] == [
        ("canonical, λ 1, ridge 0.01", "3"),
        ("canonical, λ 1, ridge 0.01, batch 128", "4"),
    ]
    metric = canonical.JUDGED["error, M=1"]
    one, other = (values(found, name, metric) for name in RUNS[:1:-1])
    quotient = np.exp(np.log(one / other).mean())
    assert table.rows[1][3].startswith(f"{quotient:.2f} (")


@pytest.mark.parametrize(
    ("differences", "quotient", "text"),
    [
        ([0.1, 0.1], False, "–"),
        ([-0.3, -0.3, -0.3], False, "-0.300 (-0.300 to -0.300) ↓"),
        ([np.log(2.0)] * 3, True, "2.00 (2.00 to 2.00) ↑"),
        ([-1.0, 0.0, 1.0], False, "+0.000 (-2.484 to +2.484)"),
    ],
)
def test_an_arrow_marks_what_is_more_than_chance(differences, quotient, text):
    assert canonical.verdict(differences, quotient=quotient) == text


def test_determination_is_one_minus_error_over_variance(found):
    (row,) = (r for r in found.of("spirograph", "none") if r["seed"] == 0)
    expected = 1 - row["metrics"]["probe/ridge/M=1/mse/sigma"] / (0.75**2 / 12)
    assert canonical.determination("M=1", "sigma")(row) == pytest.approx(expected)


def test_fresh_seeds_have_a_table_of_their_own(found):
    name = "finite-canonical-ridge0.25-1"
    seeds = (3, 4, 5, 6, 7)
    made = [record(Run("cpu", "spirograph", n), s) for n in ("none", name) for s in seeds]
    rest = [r for r in found if (r["name"], r["seed"]) not in {("none", 3), ("none", 4)}]
    first, *_, last = canonical.tables(Records([*rest, *made], "cpu"))
    assert "fresh seeds" in last.title
    assert [row[:2] for row in last.rows] == [["canonical, λ 1, ridge 0.25", "3"]]
    # Two seeds below 5 are too few for an interval.
    assert "canonical, λ 1, ridge 0.25" not in [row[0] for row in first.rows]
    values = {(r["name"], r["seed"]): r["metrics"][canonical.JUDGED["error, M=1"]] for r in made}
    logs = [np.log(values[name, s] / values["none", s]) for s in (5, 6, 7)]
    assert last.rows[0][3] == canonical.verdict(logs, quotient=True)


def test_larger_pictures_have_tables_of_their_own(found):
    made = [
        record(Run("cpu", "spirograph_32", name), seed)
        for name in canonical.LARGER
        for seed in range(3)
    ]
    experiment = canonical.ON_LARGER
    assert experiment.runs("cpu") == [f"spirograph_32/{name}" for name in canonical.LARGER]
    judged, against, *_ = experiment.tables(Records([*found, *made], "cpu"))
    assert judged.title == "Spirograph, 32×32: each form against no penalty"
    assert [row[1] for row in judged.rows] == ["3", "3"]
    values = [
        [r["metrics"][canonical.JUDGED["error, M=50"]] for r in made if r["name"] == name]
        for name in ("finite-canonical-1", "none")
    ]
    logs = [np.log(one / other) for one, other in zip(*values, strict=True)]
    assert judged.rows[1][4] == canonical.verdict(logs, quotient=True)
    assert [row[0] for row in against.rows] == ["no penalty", "unit, sampled (the paper's), λ 0.01"]
