"""Every experiment's tables and plots, and the page, from made-up records."""

import html.parser
import json

import pytest

from experiments import batch
from experiments.experiment import write
from experiments.figures import EXPERIMENTS
from experiments.plots import compose
from experiments.records import Records, load
from experiments.report import sections
from experiments.runs import SCALES
from tests.experiments.synthetic import write_records


@pytest.fixture(scope="module", params=SCALES)
def everything(request, tmp_path_factory):
    """Records of all runs of a scale, and their folder."""
    results = tmp_path_factory.mktemp(f"results_{request.param}")
    texts = {str(run) for run in batch.wanted_runs(list(EXPERIMENTS), [], request.param)}
    write_records(results, sorted(texts), request.param, seeds=3)
    return load(results, request.param), results


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_metric_that_an_experiment_shows_is_measured(everything, name):
    found, _ = everything
    experiment = EXPERIMENTS[name]
    tables = experiment.tables(found)
    assert tables or experiment.panels(found) or not experiment.runs(found.scale)
    for table in tables:
        assert table.rows
        for row in table.rows:
            assert len(row) == len(table.header)
            # Table 2 sets CIFAR-10 beside CIFAR-100, which share no run that is missing here.
            assert "–" not in row, (table.title, row)
        assert all(len(row) == len(table.header) for row in table.extra)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_panel_draws_something(everything, name):
    found, _ = everything
    experiment = EXPERIMENTS[name]
    panels = experiment.panels(found)
    if name not in ("table2", "overview") and experiment.runs(found.scale):
        assert panels
    for panel in panels:
        figure = compose([panel])
        if found.scale == "cpu":  # the same code draws the other
            figure.draw_without_rendering()
        (axis,) = figure.axes
        parts = (axis.lines, axis.patches, axis.collections, axis.images, axis.texts)
        drawn = sum(map(len, parts))
        assert drawn >= 2, axis.get_title()
        assert axis.get_title()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_nothing_measured_gives_nothing(name, tmp_path):
    assert not write(EXPERIMENTS[name], name, Records([], "cpu"), tmp_path)
    assert not list(tmp_path.iterdir())


def test_files_beside_the_records(everything, tmp_path):
    found, _ = everything
    assert write(EXPERIMENTS["fig2"], "fig2", found, tmp_path)
    assert (tmp_path / "fig2.png").read_bytes().startswith(b"\x89PNG")
    assert "V_cond/V_total" in (tmp_path / "fig2.md").read_text()
    tables = json.loads((tmp_path / "fig2.json").read_text())["tables"]
    row = tables[0]["rows"][0]
    expected = found.stat("cifar10", "none", "invariance/conditional_variance")
    assert row[2] == {"mean": expected.mean, "error": expected.error, "seeds": 3}


class Outline(html.parser.HTMLParser):
    """Links, anchors, and whether every element is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.anchors, self.sources = [], [], [], []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.links += [values["href"]] if tag == "a" else []
        self.anchors += [values["id"]] if "id" in values else []
        self.sources += [values["src"]] if "src" in values else []
        if tag not in ("img", "meta", "source"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("everything", ["cpu"], indirect=True)
def test_the_page_is_whole_and_needs_nothing_else(everything, tmp_path, monkeypatch):
    _, results = everything
    few = {name: EXPERIMENTS[name] for name in ("features", "table1", "table2")}
    monkeypatch.setattr(sections, "EXPERIMENTS", few)
    sections.build(results).write(tmp_path / "report.html")
    page = Outline()
    page.feed((tmp_path / "report.html").read_text())
    assert page.open == []
    assert {link.removeprefix("#") for link in page.links} <= set(page.anchors)
    assert {f"cpu-{name}" for name in few} <= set(page.anchors)
    assert all(source.startswith("data:image/") for source in page.sources)


def test_no_records_is_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="holds no records"):
        sections.build(tmp_path)
