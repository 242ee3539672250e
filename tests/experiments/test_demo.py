"""The demo's page: conclusions come from the numbers, and the commands at its end exist."""

import json
import re

import pytest

from experiments import demo
from experiments.report.page import Page, comparison
from invclr_jax import main


@pytest.fixture
def found(tmp_path):
    """Made-up metrics, in which each run is the best at something; and their folder."""
    metrics = {}
    for place, name in enumerate(demo.RUNS):
        workdir = demo._workdir(tmp_path, name)
        workdir.mkdir()
        line = {"step": 1, "contrastive": 3.0 + place, "penalty": 0.1}
        (workdir / "metrics.jsonl").write_text(json.dumps(line) + "\n")
        metrics[name] = dict.fromkeys(demo.METRICS, 1.0 + place)
        errors = {m: 1 + place if m == 1 else 1 / (m + place) for m in demo.SETTINGS.num_samples}
        metrics[name] |= {f"probe/ridge/M={m}/mse/total": error for m, error in errors.items()}
    return tmp_path, metrics


def test_titles_are_conclusions(found):
    folder, metrics = found
    assert demo.learning_curves(folder)[0].axes[0].get_title() == (
        "Contrastive loss: “no penalty” ends lowest, 3.00"
    )
    assert demo.averaging_curve(metrics).axes[0].get_title() == (
        "Lowest with one view: “no penalty”; with 20: “canonical”"
    )


def test_it_ends_with_commands_that_exist(found):
    folder, metrics = found
    demo.report(folder, metrics, 7, 1.0).write(folder / "report.html")
    text = (folder / "report.html").read_text()
    assert "7 steps each" in text
    commands = re.findall(r"^invclr (\w+)", re.search(r"<pre>(.*?)</pre>", text, re.S)[1], re.M)
    assert len(commands) >= 3
    assert set(commands) <= set(main.COMMANDS)


def test_the_better_extreme_is_marked(tmp_path):
    page = Page("t")
    names = {"a": ("error", "low"), "b": ("share", "high"), "c": ("neither", None)}
    runs = {"one": {"a": 1.0, "b": 1.0, "c": 1.0}, "two": {"a": 2.0, "b": 2.0, "c": 2.0}}
    comparison(page, names, runs)
    page.write(tmp_path / "page.html")
    rows = re.findall(r"<tr>(<td>.*?)</tr>", (tmp_path / "page.html").read_text())
    assert rows == [
        "<td>↓ error</td><td><b>1</b></td><td>2</td>",
        "<td>↑ share</td><td>1</td><td><b>2</b></td>",
        "<td>neither</td><td>1</td><td>2</td>",
    ]
