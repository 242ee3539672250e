"""Links that leave `docs/`: the files behind them become part of the site."""

import pathlib
import posixpath
import re
from collections.abc import Iterator

FOLDER = "files"
"""Where copies lie within the site."""

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")


def place(path: str) -> str:
    """Where the site keeps a file of the repository.

    Args:
      path: from the root of the repository.
    """
    folder, name = posixpath.split(path)
    # MkDocs makes README.md the index of its folder: give it the name of what it describes.
    return posixpath.join(FOLDER, folder, "contents.md" if name == "README.md" else name)


def linked(root: pathlib.Path) -> list[str]:
    """Files outside `docs/` that its pages link to, and the pictures of those that are pages.

    Args:
      root: of the repository.
    """
    found: dict[str, None] = {}
    for page in sorted((root / "docs").rglob("*.md")):
        for target in _targets(page, root):
            if target.startswith("docs/") or not (root / target).is_file():
                continue
            found[target] = None
            if target.endswith(".md"):
                pictures = _targets(root / target, root)
                found |= dict.fromkeys(path for path in pictures if (root / path).is_file())
    return list(found)


def _targets(page: pathlib.Path, root: pathlib.Path) -> Iterator[str]:
    """What the links of a page point to, from the root of the repository."""
    folder = page.parent.relative_to(root).as_posix()
    for match in _LINK.finditer(page.read_text()):
        if "://" not in match[3]:
            yield posixpath.normpath(posixpath.join(folder, match[3]))


def redirect(markdown: str, page: str, root: pathlib.Path) -> str:
    """The page with links to copies in the site; links to folders become plain names.

    Args:
      markdown: of a page of `docs/`.
      page: its path within the site, `findings.md`.
      root: of the repository.
    """
    if page.startswith(FOLDER + "/"):
        return markdown
    folder = posixpath.join("docs", posixpath.dirname(page))

    def redirected(match: re.Match) -> str:
        mark, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        if "://" in target or path.startswith("docs/"):
            return match[0]
        if (root / path).is_dir():
            return f"`{text.strip('`')}`"
        up = posixpath.relpath(place(path), posixpath.dirname(page) or ".")
        return f"{mark}[{text}]({up}{anchor})"

    return _LINK.sub(redirected, markdown)
