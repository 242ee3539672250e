"""Aggregation against NumPy and SciPy."""

import json

import numpy as np
import pytest
import scipy.stats

from experiments import tables
from experiments.records import Records, Stat, load, summarise
from experiments.tables import Column, Table, metric_table


def records_of(values, name="none"):
    return [
        {"dataset": "spirograph", "name": name, "seed": seed, "metrics": {"a": value}}
        for seed, value in enumerate(values)
    ]


def test_mean_and_standard_error():
    values = np.random.default_rng(0).normal(size=7)
    stat = summarise(values)
    np.testing.assert_allclose(stat.mean, values.mean())
    np.testing.assert_allclose(stat.error, scipy.stats.sem(values))
    assert stat.seeds == 7


def test_one_seed_has_no_error():
    assert summarise([2.0]) == Stat(2.0, None, 1)


@pytest.mark.parametrize(
    ("stat", "text"),
    [
        (Stat(0.0353, 0.0002), "0.03530 ± 0.00020"),
        (Stat(93.351, 0.04), "93.351 ± 0.040"),
        (Stat(6.773e-4, 5.09e-5), "(6.77 ± 0.51)e-4"),
        (Stat(0.0016, 0.00004), "(1.600 ± 0.040)e-3"),
        (Stat(2.8e-6, 1e-7), "(2.80 ± 0.10)e-6"),
        (Stat(1234.5, 120.0), "1234 ± 120"),
        (Stat(0.5), "0.5"),
        (Stat(0.5, 0.0), "0.5 ± 0"),
        (Stat(0.0, 0.01), "0.000 ± 0.010"),
    ],
)
def test_numbers_for_people(stat, text):
    assert str(stat) == text


def test_metrics_by_name_and_by_function():
    found = Records(records_of([1.0, 3.0]), "cpu")
    assert found.values("spirograph", "none", "a") == [1.0, 3.0]
    assert found.values("spirograph", "none", lambda record: 2 * record["metrics"]["a"]) == [2, 6]
    assert found.values("spirograph", "none", "missing") == []
    assert found.stat("spirograph", "other", "a") is None


def test_a_curve_leaves_out_what_was_not_measured():
    found = Records(records_of([1.0, 3.0]), "cpu")
    x, mean, error = found.curve("spirograph", "none", [5, 6], {5: "a", 6: "b"}.get)
    np.testing.assert_allclose([x, mean, error], [[5], [2], [1]])
    assert [len(part) for part in found.curve("spirograph", "none", [6], {6: "b"}.get)] == [0] * 3


def test_factors_compare_runs_of_the_same_seed():
    plain, other = np.array([1.0, 2.0, 4.0]), np.array([0.5, 3.0, 1.0])
    more = {"dataset": "spirograph", "name": "unit-0.01", "seed": 9, "metrics": {"a": 100.0}}
    found = Records([*records_of(plain), *records_of(other, "unit-0.01"), more], "cpu")
    factor = found.factor("spirograph", "unit-0.01", "a")
    np.testing.assert_allclose(factor.mean, scipy.stats.gmean(other / plain))
    expected = factor.mean * scipy.stats.sem(np.log(other / plain))
    np.testing.assert_allclose(factor.error, expected)
    assert factor.seeds == 3
    assert found.factor("spirograph", "unit-0.01", "b") is None


def test_records_are_read_from_their_folders(tmp_path):
    for seed in (1, 0):
        path = tmp_path / "cpu" / "spirograph" / "none" / f"seed{seed}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(records_of([10.0, 20.0])[seed]))
    (tmp_path / "cpu" / "fig2.json").write_text("{}")  # a table, not a record
    found = load(tmp_path, "cpu")
    assert found.values("spirograph", "none", "a") == [10.0, 20.0]
    assert len(load(tmp_path, "paper")) == 0


def test_the_best_of_a_column_is_marked_among_our_own_rows():
    rows = [["one", Stat(2.0), Stat(2.0)], ["two", Stat(1.0), Stat(1.0)], ["three", "–", "–"]]
    table = Table("t", ["", "low", "high"], rows, (None, "low", "high"), [["paper", Stat(0), "9"]])
    assert [[best for _, best in row] for row in table.marked()] == [
        [False, False, True],
        [False, True, False],
        [False, False, False],
        [False, False, False],
    ]
    assert "| two | **1** | 1 |" in table.markdown()


def test_tables_hold_only_runs_that_were_made():
    found = Records(records_of([1.0, 2.0]) + records_of([3.0], "unit-0.01"), "cpu")
    names = ("none", "unit-0.01", "centred-0.01")
    (table,) = metric_table(found, "spirograph", names, [Column("A", "a", "low")], "title")
    assert [row[:2] for row in table.rows] == [["no penalty", "2"], ["unit, λ 0.01", "1"]]
    stored = table.to_json()["rows"][0][2]
    assert stored == {"mean": 1.5, "error": 0.5, "seeds": 2}
    assert metric_table(found, "cifar10", names, [Column("A", "a")], "title") == []


def test_accuracies_have_a_binomial_error_by_the_test_rows_of_a_record():
    rows = [
        {"dataset": "cifar10", "name": "none", "seed": seed, "metrics": {"a": mean, "b": 0.5}}
        | {"evaluation": {"rows": [None, 400]}}
        for seed, mean in enumerate((40.0, 60.0))
    ]
    columns = [tables.Accuracy("accuracy", "a"), tables.Column("ratio", "b", "low")]
    (table,) = tables.metric_table(Records(rows, "cpu"), "cifar10", ["none"], columns, "title")
    ((text, _, error, other),) = table.extra
    assert "400 test rows" in text
    assert error == "± 2.5"  # 100 · sqrt(.5 · .5 / 400)
    assert other == "–"
    assert table.best[2:] == ["high", "low"]
    whole = rows[0] | {"evaluation": {"rows": [None, None]}}
    assert tables.num_test_rows(whole) == 10_000
