"""What MkDocs calls while it builds the site (`hooks` in mkdocs.yml)."""

import pathlib
from typing import Any

from mkdocs.structure.files import File, Files

from website import api_page, commands_page, config_page, mathematics, notebooks, outside

ROOT = pathlib.Path(__file__).parents[1]


def on_files(files: Files, config: Any) -> Files:
    """Adds the generated pages, the tutorials, and files of the repository that pages link to."""
    pages = {
        "reference/api.md": api_page.page(),
        "reference/config.md": config_page.page(),
        "reference/commands.md": commands_page.page(),
    }
    pages |= notebooks.pages(ROOT / "docs")
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    for path in outside.linked(ROOT):
        place = outside.place(path)
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Points links that leave `docs/` to copies within the site, and notebooks to their pages."""
    path = page.file.src_uri
    if not path.startswith(notebooks.FOLDER + "/"):  # which did so themselves
        markdown = notebooks.to_pages(markdown)
    return outside.redirect(markdown, path, ROOT)


def on_page_content(html: str, **_: Any) -> str:
    """Draws formulas as MathML, which browsers show without scripts or fonts from elsewhere."""
    return mathematics.draw(html)
