"""What newcomers and workflows rely on: targets, versions, lower ends."""

import pathlib
import re
import runpy

import invclr_jax

ROOT = pathlib.Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text()


def test_every_target_is_explained_by_help():
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)[1].split()
    assert phony == re.findall(r"^([\w-]+):.*## \w", MAKEFILE, re.M)


def test_targets_that_files_name_exist():
    targets = set(re.findall(r"^([\w-]+):", MAKEFILE, re.M))
    places = [*ROOT.glob(".github/workflows/*.yml"), ROOT / ".ci/run", ROOT / "CONTRIBUTING.md"]
    named = {
        name
        for path in places
        for name in re.findall(r"^(?:\s+- run: )?make ([\w-]+)", path.read_text(), re.M)
    }
    assert {"test", "test-slow", "test-lowest", "docs"} <= named <= targets


def test_the_citation_has_the_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", text, re.M)[1] == invclr_jax.__version__
    assert f"## {invclr_jax.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_lower_ends_become_constraints():
    lowest = runpy.run_path(str(ROOT / ".ci/lowest.py"))["lowest"]
    text = "\n    absl-py>=2.1\n    jax>=0.10,<0.11\n    free\n"
    assert lowest(text) == ["absl-py==2.1", "jax==0.10"]
