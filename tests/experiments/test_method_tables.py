"""Tables of methods: means and paired differences by hand."""

from experiments import method_tables


def row(probe, alpha=0.5):
    return dict.fromkeys(method_tables.SHOWN, probe) | {"alpha": alpha}


ROWS = {
    "byol/none/seed0": row(30.0),
    "byol/none/seed1": row(32.0),
    "byol/sampled-unit-0.1/seed0": row(31.0, 0.4),
    "byol/sampled-unit-0.1/seed1": row(35.0, 0.45),
    "emp/none/seed0": row(40.0),
    "emp/none/seed1": row(40.0),
    "emp/sampled-unit-3/seed0": row(45.0, 0.4),
    "emp/sampled-unit-3/seed1": row(39.0, 0.6),
    "simclr/sampled-unit-0.1/seed0": row(50.0),
}


def test_methods_without_a_penalty_the_best_first():
    best, last = method_tables.without_penalty(ROWS).rows
    assert (best[0], best[1], best[2].mean) == ("emp", "2", 40)
    assert (last[0], last[2].mean, last[2].error) == ("byol", 31, 1)


def test_changes_are_paired_by_seed_and_arrows_say_that_seeds_agree():
    byol, emp = method_tables.changes(ROWS, "sampled-unit").rows
    assert (byol[0], byol[2], byol[-1]) == ("byol", "+2.00 ↑", "-0.075 ↓")
    # The mean gain is the same, but one seed lost; a method without a pair is left out.
    assert (emp[0], emp[2], emp[-1]) == ("emp", "+2.00", "+0.000")
    assert method_tables.changes(ROWS, "unclipped-finite-canonical-views").rows == []
    assert "the paper's penalty" in method_tables.markdown(ROWS)
