"""Means and paired intervals of the fair table, against SciPy."""

import numpy as np
import scipy.stats

from experiments import fair_tables
from experiments.all_rows import COLUMNS


def rows(values):
    return {
        f"{name}/seed{seed}": {column: value + 0.1 * i for i, column in enumerate(COLUMNS)}
        for name, seeds in values.items()
        for seed, value in enumerate(seeds)
    }


def test_differences_are_paired_by_seed():
    none, ours = [40.0, 41.0, 43.0], [42.0, 42.5, 45.25]
    measured = rows({"none": none, "ours": ours})
    table = fair_tables.differences(measured, "none")
    (name, seeds, first, *rest), *others = table.rows
    assert (name, seeds, others) == ("ours", "3", [])
    assert len(rest) == len(fair_tables.shown(measured)) - 1
    found = np.subtract(ours, none)
    low, high = scipy.stats.t.interval(0.95, 2, found.mean(), scipy.stats.sem(found))
    assert first == f"{found.mean():+.2f} ({low:.2f} to {high:.2f}) ↑"


def test_two_seeds_give_no_interval_and_what_has_no_partner_is_left_out():
    measured = rows({"none": [40.0, 41.0], "ours": [39.0, 41.5, 50.0]})
    assert fair_tables.differences(measured, "none").rows[0][1:3] == ["2", "-0.25"]
    assert fair_tables.differences(measured, "other").rows == []


def test_means():
    table = fair_tables.means(rows({"none": [40.0, 41.0, 43.0]}))
    assert table.rows[0][:2] == ["none", "3"]
    assert table.rows[0][2].mean == np.mean([40, 41, 43])
    assert "± " in fair_tables.markdown(rows({"none": [40.0, 41.0]}))


def test_columns_that_older_records_lack_are_not_shown():
    measured = rows({"none": [40.0], "ours": [41.0]})
    assert set(COLUMNS) - set(fair_tables.shown(measured)) == {"error", "l2"}
    del measured["ours/seed0"]["coloured"]
    assert "coloured" not in fair_tables.shown(measured)
    assert COLUMNS["coloured"] not in fair_tables.markdown(measured)


def test_a_row_for_each_measure_holds_the_same_numbers():
    measured = rows({"none": [40.0, 41.0, 43.0], "ours": [42.0, 42.5, 45.25]})
    table = fair_tables.by_measure(measured)
    assert table.header == ["", "none (3 seeds)", "ours (3 seeds)"]
    assert [row[0] for row in table.rows] == [COLUMNS[c] for c in fair_tables.shown(measured)]
    assert [row[1] for row in table.rows] == fair_tables.means(measured).rows[0][2:]
    assert [row[2] for row in table.rows] == fair_tables.differences(measured, "none").rows[0][2:]
