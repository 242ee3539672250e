"""The page of plans: its tables are those of the records, and what is missing is named."""

import json
import pathlib

from experiments import accelerator_page, accelerators
from invclr_jax.planning import program

ROOT = pathlib.Path(__file__).parents[2]


def records():
    folder = ROOT / accelerators.FOLDER
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def test_the_page_is_what_the_records_say():
    names = [name for group in accelerators.RUNS.values() for name in group]
    text = (ROOT / accelerators.PAGE).read_text()
    assert accelerator_page.fill(text, records(), names) == text


def test_rows_and_what_is_missing():
    made = accelerator_page.fill("<!-- plans -->\n<!-- end -->", records(), ["spirograph", "mine"])
    assert (
        "| spirograph | resnet18, 512 | plain | usual | 0.09, 0.88, 1.09 of 14.9 | 0.373 |" in made
    )
    assert "Not compiled for a TPU slice yet: mine." in made


def test_a_step_that_does_not_fit():
    record = records()[0]
    refused = record | {"steps": {"plain": {"refusal": "too large"}}}
    made = accelerator_page.fill("<!-- plans -->\n<!-- end -->", [refused], [])
    row = next(line for line in made.splitlines() if "does not fit" in line)
    head = next(line for line in made.splitlines() if line.startswith("| config"))
    assert row.count("|") == head.count("|")


def test_one_file_for_each_plan():
    for record in records():
        paths = [
            accelerators.record_path(record["config"], record["topology"], effort)
            for effort in program.EFFORTS
        ]
        assert any((ROOT / path).exists() for path in paths)
