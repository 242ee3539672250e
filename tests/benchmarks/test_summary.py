"""The page of all measurements says what the JSON files say."""

import json

import pytest

from benchmarks.measure import Row
from benchmarks.summary import against_targets, reached, summary


def test_the_page_holds_every_row(tmp_path):
    row = {"work": "a step", "ours": 2.0, "theirs": 3.0, "reference": "theirs", "ratio": 1.5}
    record = {"machine": {"device": "cpu"}, "code": "abc", "rows": [row | {"unit": "s"}]}
    (tmp_path / "step.json").write_text(json.dumps(record))
    page = summary(tmp_path)
    assert "| a step | 2 s | 3 s (theirs) | 1.50× |" in page
    assert "code abc" in page
    assert "## memory" not in page


@pytest.mark.parametrize(
    ("ours", "theirs", "target", "expected"),
    [
        (2.0, 3.0, "≥ 1.5×", True),
        (2.0, 2.9, "≥ 1.5×", False),
        (2.0, None, "≥ 1.5×", False),
        (0.6, None, "≤ 0.6", True),
        (16.0, None, "≤ 15 s", False),
        (0.9, None, "0 ms", False),
        (2000.0, None, "< 2000 MB", False),
        (1.0, 18.0, "≥ 1× at equal loss", True),
        (1.0, 2.0, "", None),
    ],
)
def test_targets_are_read(ours, theirs, target, expected):
    assert reached(Row("work", ours, theirs, target=target)) is expected


def test_rows_are_divided_by_their_targets(tmp_path):
    rows = [
        {"work": name, "ours": 2.0, "theirs": 3.0, "target": target}
        for name, target in (("a", "≥ 1.5×"), ("b", "≥ 2×"), ("c", ""))
    ]
    (tmp_path / "step.json").write_text(json.dumps({"rows": rows}))
    met, missed = (against_targets(tmp_path, met=met) for met in (True, False))
    assert [line.split(" | ")[0] for line in met.splitlines()[2:]] == ["| a"]
    assert [line.split(" | ")[0] for line in missed.splitlines()[2:]] == ["| b"]
