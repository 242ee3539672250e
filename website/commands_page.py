"""The reference of the command line: what `invclr COMMAND --help` prints."""

import concurrent.futures
import subprocess
import sys

from invclr_jax.main import COMMANDS

HEAD = """# Command line

`invclr COMMAND --flags`, or `python -m invclr_jax.main COMMAND --flags`. Every command also takes
`--compilation_cache` (a folder that keeps compiled programs) and `--verbosity=1` (shows where an
error came from).
"""


def page() -> str:
    """The page."""
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        helps = list(threads.map(_help, COMMANDS))
    parts = [
        f"## invclr {name}\n\n{what[0].upper()}{what[1:]}.\n\n```text\n{text}```\n"
        for (name, what), text in zip(COMMANDS.items(), helps, strict=True)
    ]
    return "\n".join([HEAD, *parts])


def _help(command: str) -> str:
    """In a process of its own: commands define flags of the same names."""
    words = [sys.executable, "-m", "invclr_jax.main", command, "--help"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
