"""The overview names the M that it shows."""

import pytest

from experiments.figures import overview
from experiments.records import Records
from experiments.runs import parse
from tests.experiments.synthetic import record


@pytest.mark.parametrize(("scale", "name"), [("cpu", "error, M=50"), ("paper", "error, M=100")])
def test_the_largest_m_is_that_of_the_records(scale, name):
    records = Records([record(parse("spirograph/none", scale), 0)], scale)
    (table,) = overview.tables(records)
    assert name in table.header
    value = records.stat("spirograph", "none", f"probe/ridge/{name[7:]}/mse/total")
    assert table.rows[0][table.header.index(name)] == value


def test_records_of_different_ms_are_named_together():
    one = record(parse("cifar10/none", "cpu"), 0)
    small = {k: v for k, v in one["metrics"].items() if "M=20" not in k}
    records = Records([one, one | {"seed": 1, "metrics": small}], "cpu")
    assert "accuracy, M=10–20" in overview.tables(records)[0].header
