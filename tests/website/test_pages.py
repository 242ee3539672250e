"""The generated pages of the site tell everything that there is to tell."""

import pathlib
import re

import nbformat
import pytest

import invclr_jax
from invclr_jax.config import default_config, flatten
from invclr_jax.objectives.penalty import exact_penalty
from website import api_page, config_page, notebooks, outside

ROOT = pathlib.Path(__file__).parents[2]


def test_every_public_name_stands_in_the_reference_once():
    text = api_page.page()
    assert sorted(name for names in api_page.groups().values() for name in names) == sorted(
        invclr_jax.__all__
    )
    for target in invclr_jax._NAMES.values():
        assert f"::: {target.replace(':', '.')}\n" in text


def test_every_config_key_has_a_meaning():
    known = config_page.meanings()
    assert [key for key in flatten(default_config()) if not known.get(key)] == []


def test_meanings_are_the_comments_beside_and_above():
    source = (
        "def f():\n"
        "    # not this one\n\n"
        "    config.seed = 0  # of weights\n"
        "    config.model = dict(\n"
        "        # a name,\n"
        "        # or a path\n"
        "        name=1,  # of yours\n"
        "        width=2,\n"
        "    )\n"
    )
    assert config_page._commented(source) == {
        "seed": "of weights",
        "model": "",
        "model.name": "a name, or a path of yours",
        "model.width": "",
    }


def test_the_page_of_keys_has_defaults_and_what_fidelity_decides():
    text = config_page.page()
    assert "| `penalty.weight` | `0.1` | Lambda; 0 is plain contrastive learning |" in text
    assert "| `optimizer.rule` | `'optax'` | `'torchlars'` |" in text
    assert "| `moco.queue_size` | `2048` |" in text


def test_a_notebook_becomes_a_page_with_its_outputs():
    code = nbformat.v4.new_code_cell("1 + 1")
    code.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "2"})]
    link = nbformat.v4.new_markdown_cell("[next](../a/u.ipynb)")
    cells = [nbformat.v4.new_markdown_cell("# T"), link, code]
    text = notebooks.markdown(nbformat.v4.new_notebook(cells=cells), "t.ipynb")
    assert text.startswith("# T\n\n*This page is a notebook: [t.ipynb](t.ipynb).*")
    assert "[next](../a/u.md)" in text
    assert "```python\n1 + 1\n```" in text
    assert text.endswith('title="Output"}\n2\n```\n')


@pytest.fixture
def repository(tmp_path):
    for path, text in {
        "docs/how/a.md": "[c](../../code/c.py#L3) [b](../b.md) [w](https://x.y/z) [f](../../code)",
        "docs/b.md": "[results](../code/README.md)",
        "code/c.py": "",
        "code/README.md": "![plot](plot.png)",
        "code/plot.png": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_links_that_leave_the_documentation_go_to_copies(repository):
    assert set(outside.linked(repository)) == {"code/c.py", "code/README.md", "code/plot.png"}
    text = (repository / "docs/how/a.md").read_text()
    assert outside.redirect(text, "how/a.md", repository) == (
        "[c](../files/code/c.py#L3) [b](../b.md) [w](https://x.y/z) `f`"
    )
    text = (repository / "docs/b.md").read_text()
    assert outside.redirect(text, "b.md", repository) == "[results](files/code/contents.md)"


def test_the_penalty_page_computes_the_penalty():
    """Its code block, against the closed form for all signs and all alpha'."""
    text = (ROOT / "docs/understand/penalty.md").read_text()
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], names)
    exact = exact_penalty(
        names["represent"], names["alpha"], names["transform"].alpha, feature="unit"
    )
    assert 0.2 * float(exact) < float(names["value"]) < 5 * float(exact)
