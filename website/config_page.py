"""The reference of the configuration: every key, its default and what it means.

Meanings are the comments of `invclr_jax/config/keys.py`, and for a method's own section the
attributes in its docstring, so that nobody writes them twice.
"""

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from typing import Any

from invclr_jax.config import FIDELITY, default_config, flatten, keys
from invclr_jax.methods import METHODS

HEAD = """# Configuration

Every key of a config, from `invclr_jax.config.default_config()`. On the command line write
`--config.penalty.weight=0.01`, in Python `config.penalty.weight = 0.01`. *Decided later* means that
the key is None until the data, the method or `fidelity` decides.
"""


def page() -> str:
    """The page."""
    defaults, known = flatten(default_config()), meanings()
    sections: dict[str, list[str]] = {}
    for key, value in defaults.items():
        section = key.partition(".")[0] if "." in key else ""
        row = f"| `{key}` | {_default(key, value)} | {_cell(known.get(key, ''))} |"
        sections.setdefault(section, []).append(row)
    parts = [HEAD]
    # The run itself first, sections of single methods last.
    for section in sorted(sections, key=lambda name: (name in METHODS, name)):
        rows = sections[section]
        title = f"## {section}" if section else "## The run"
        parts.append("\n".join([title, "", "| Key | Default | Meaning |", "|---|---|---|", *rows]))
    return "\n\n".join([*parts, _fidelity()]) + "\n"


def meanings() -> dict[str, str]:
    """What each key means, where the code says so."""
    known = _commented(inspect.getsource(keys.default_config))
    for name, method in METHODS.items():
        for option in method.options:
            known[f"{name}.{option}"] = _attribute(method, option)
    return known


def _commented(source: str) -> dict[str, str]:
    """The comments beside the keys that a function assigns, or right above them."""
    lines = {}
    alone = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0]] = token.string.lstrip("# ")
            if token.line.strip().startswith("#"):
                alone.add(token.start[0])

    def comment(node: ast.stmt | ast.keyword) -> str:
        first = last = node.lineno
        while first - 1 in alone:
            first -= 1
        return " ".join(lines[number] for number in range(first, last + 1) if number in lines)

    found = {}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
            continue
        name = node.targets[0].attr
        found[name] = comment(node)
        found |= {f"{name}.{key}": comment(keyword) for key, keyword in _keywords(node.value)}
    return found


def _keywords(value: ast.expr) -> Iterator[tuple[str, ast.keyword]]:
    """The keywords of `dict(...)`, and of those within it, by their dotted names."""
    for keyword in value.keywords if isinstance(value, ast.Call) else ():
        yield str(keyword.arg), keyword
        for key, inner in _keywords(keyword.value):
            yield f"{keyword.arg}.{key}", inner


def _attribute(method: type, name: str) -> str:
    """An attribute's line in the docstring of a class or of one that it extends."""
    for kind in method.__mro__:
        lines = re.search(rf"^      ([\w, ]*\b{name}\b[\w, ]*): (.*)$", kind.__doc__ or "", re.M)
        if lines:
            return lines[2]
    return ""


def _default(key: str, value: Any) -> str:
    if value is None:
        return "*decided later*"
    return f"`{value!r}`".replace("|", "\\|")


def _cell(meaning: str) -> str:
    meaning = meaning[:1].upper() + meaning[1:]
    return meaning.replace("|", "\\|")


def _fidelity() -> str:
    """What `fidelity` decides."""
    rows: Mapping[str, tuple[Any, Any]] = FIDELITY | dict(METHODS["simclr"].defaults)
    lines = [f"| `{key}` | `{paper!r}` | `{theirs!r}` |" for key, (paper, theirs) in rows.items()]
    head = (
        "## What `fidelity` decides\n\nFor SimCLR, unless you set the key yourself; the "
        "other methods have defaults of their own.\n\n"
        '| Key | `fidelity="paper"` | `fidelity="authors"` |\n|---|---|---|'
    )
    return "\n".join([head, *lines])
