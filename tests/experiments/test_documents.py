"""Tables in documents are those of the records."""

import pathlib

import pytest

from experiments import documents, jumps
from experiments.figures import EXPERIMENTS
from experiments.records import Records
from experiments.runs import compared, parse
from tests.experiments.synthetic import record

ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "experiments/results"
SOURCE = documents.sources(RESULTS, RESULTS / "encoders", ROOT / "benchmarks/results")
PAGES = [
    path
    for path in (ROOT / "README.md", *ROOT.glob("docs/*.md"))
    if "<!-- table" in path.read_text()
]
TEXT = "# A\n<!-- table: overview{} -->\nstale\n<!-- end -->\nB\n"


@pytest.fixture(scope="module")
def found():
    texts = compared("cpu", "spirograph", "cifar10")
    made = [record(parse(text, "cpu"), seed) for text in texts for seed in (0, 1)]
    return {"": documents.Source(Records(made, "cpu"), {})}.__getitem__


def test_the_marked_place_holds_the_tables_and_nothing_else_changes(found):
    filled = documents.fill(TEXT.format(""), found)
    tables = EXPERIMENTS["overview"].tables(found("").stored)
    assert [table.title for table in tables] == ["Spirograph", "CIFAR-10"]
    for table in tables:
        assert table.markdown() in filled
    assert "stale" not in filled
    assert filled.startswith("# A\n<!-- table: overview -->\n")
    assert filled.endswith("<!-- end -->\nB\n")
    assert documents.fill(filled, found) == filled


def test_one_table_by_its_number(found):
    filled = documents.fill(TEXT.format(" 1"), found)
    assert "**CIFAR-10**" in filled
    assert "**Spirograph**" not in filled


def test_some_columns_of_a_table(found):
    filled = documents.fill(TEXT.format(" 0 columns 0 2"), found)
    whole = EXPERIMENTS["overview"].tables(found("").stored)[0]
    rows = [line for line in filled.splitlines() if line.startswith("|")]
    assert rows[0] == f"|  | {whole.header[2]} |"
    for row, cells in zip(rows[2:], whole.marked(), strict=True):
        text, best = cells[2]
        assert row == f"| {cells[0][0]} | {f'**{text}**' if best else text} |"
    fewer = documents.fill(TEXT.format(" 0 columns 0 2 rows 1 3"), found)
    shown = [line for line in fewer.splitlines() if line.startswith("|")]
    assert [row.split(" | ")[0] for row in shown[2:]] == [
        row.split(" | ")[0] for row in (rows[3], rows[5])
    ]
    with pytest.raises(ValueError, match="rows, no 99"):
        documents.fill(TEXT.format(" 0 rows 99"), found)
    with pytest.raises(ValueError, match="columns, no 99"):
        documents.fill(TEXT.format(" 0 columns 0 99"), found)


def test_unknown_names_and_numbers_are_refused(found):
    with pytest.raises(ValueError, match="no experiment 'fig99'"):
        documents.fill("<!-- table: fig99 -->\n<!-- end -->", found)
    with pytest.raises(ValueError, match="has 2 tables, none with the number 7"):
        documents.fill(TEXT.format(" 7"), found)


def test_the_mechanism_is_averaged_over_seeds(found):
    rows = {f"unit-0.1/seed{k}": dict.fromkeys(jumps.COLUMNS, float(k)) for k in (1, 2)}
    source = documents.Source(found("").stored, {"mechanism": jumps.table(rows)})
    text = "<!-- table: mechanism of older -->\n<!-- end -->"
    filled = documents.fill(text, {"older": source}.__getitem__)
    assert "| unit-0.1 | 2 |" + " 1.5 |" * len(jumps.COLUMNS) in filled


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_is_out_of_date(path):
    text = path.read_text()
    assert documents.fill(text, SOURCE) == text, f"python -m experiments.documents {path.name}"
