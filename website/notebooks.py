"""Tutorials: notebooks without outputs in `docs/tutorials`, pages in the site.

With `EXECUTE_TUTORIALS=1` in the environment they are run first, and the pages show what came out.
"""

import os
import pathlib
import re
import tempfile

import nbclient
import nbformat

FOLDER = "tutorials"


def pages(docs: pathlib.Path) -> dict[str, str]:
    """Path within the site -> Markdown, for every tutorial.

    Args:
      docs: folder of the documentation.
    """
    found = {}
    for path in sorted((docs / FOLDER).glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if os.environ.get("EXECUTE_TUTORIALS"):
            execute(notebook)
        found[f"{FOLDER}/{path.stem}.md"] = markdown(notebook, path.name)
    return found


def execute(notebook: nbformat.NotebookNode, timeout: int = 900) -> None:
    """Runs a notebook in an empty folder; its outputs are put in place.

    Args:
      notebook: changed in place.
      timeout: seconds for a cell.
    """
    root = str(pathlib.Path(__file__).parents[1])
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        client = nbclient.NotebookClient(notebook, timeout=timeout, resources=place)
        client.execute(env=os.environ | {"PYTHONPATH": root})


def markdown(notebook: nbformat.NotebookNode, name: str) -> str:
    """The page of a notebook.

    Args:
      notebook: with or without outputs.
      name: file to offer for download.
    """
    title, *cells = notebook.cells
    parts = [title.source, f"*This page is a notebook: [{name}]({name}).*"]
    for cell in cells:
        if cell.cell_type == "markdown":
            parts.append(to_pages(cell.source))
            continue
        parts.append(f"```python\n{cell.source}\n```")
        parts += [text for output in cell.outputs if (text := _output(output))]
    return "\n\n".join(parts) + "\n"


def to_pages(text: str) -> str:
    """Markdown whose links to notebooks lead to their pages."""
    return re.sub(r"(\]\([\w./]+)\.ipynb\)", r"\1.md)", text)


def _output(output: nbformat.NotebookNode) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![output](data:image/png;base64,{''.join(data['image/png'].split())})"
    text = output.text if output.output_type == "stream" else data.get("text/plain", "")
    return f'```{{.text .output title="Output"}}\n{text.rstrip()}\n```' if text.strip() else ""
