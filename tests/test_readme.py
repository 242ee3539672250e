"""The README: what it links to exists, its commands exist, and its tables fit the page."""

import pathlib
import re

from invclr_jax import config, main

ROOT = pathlib.Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
WIDEST = 120
"""Characters of a table's row that a page of GitHub shows without scrolling."""


def shown(row):
    """A row without markup."""
    return re.sub(r"\]\([^)]*\)|[\[*`|]", "", row)


def test_links_and_pictures_exist():
    links = re.findall(r"\]\(([^)#]+)", TEXT) + re.findall(r'(?:src|srcset)="([^"]+)"', TEXT)
    assert len(links) > 10
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_no_table_is_wider_than_the_page():
    rows = [line for line in TEXT.splitlines() if line.startswith("|")]
    assert rows
    assert [row for row in rows if len(shown(row)) > WIDEST] == []


def test_commands_and_configs_exist():
    commands = re.findall(r"^invclr (\w+)(.*)$", TEXT, re.M)
    assert len(commands) == 3
    assert {name for name, _ in commands} <= set(main.COMMANDS)
    targets = re.findall(r"^([\w-]+):.*##", (ROOT / "Makefile").read_text(), re.M)
    assert set(re.findall(r"`make ([\w-]+)`", TEXT)) <= set(targets)
    for _, flags in commands:
        for name in re.findall(r"--config=(\w+)", flags):
            assert name in config.names()
