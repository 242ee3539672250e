"""The page of all measurements says what the JSON files say."""

import json

from benchmarks.summary import summary


def test_the_page_holds_every_row(tmp_path):
    row = {"work": "a step", "ours": 2.0, "theirs": 3.0, "reference": "theirs", "ratio": 1.5}
    record = {"machine": {"device": "cpu"}, "code": "abc", "rows": [row | {"unit": "s"}]}
    (tmp_path / "step.json").write_text(json.dumps(record))
    page = summary(tmp_path)
    assert "| a step | 2 s | 3 s (theirs) | 1.50× |" in page
    assert "code abc" in page
    assert "## memory" not in page
