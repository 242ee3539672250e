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
    table = fair_tables.differences(rows({"none": none, "ours": ours}), "none")
    (name, seeds, first, *rest), *others = table.rows
    assert (name, seeds, others) == ("ours", "3", [])
    assert len(rest) == len(fair_tables.SHOWN) - 1
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
