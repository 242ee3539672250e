"""Files that are either the old ones or the new ones, never half of each."""

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Iterator
from typing import BinaryIO


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Replaces a file as a whole; see `replacing`.

    Args:
      path: the file.
      content: all of it; text is written as UTF-8.
    """
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a temporary file that becomes `path` at the end; makes the folder if need be.

    A reader sees the old content or the new one, also where the process is killed. Where writing
    fails, the old file stays, the temporary one is removed, and the error is raised.

    Args:
      path: the file.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own: two processes may write the same file at the same time.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with open(handle, "wb") as file:
            os.fchmod(handle, _permissions(path))
            yield file
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _permissions(path: pathlib.Path) -> int:
    """Those of the file that is replaced, or those that `open` would give a new one."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)  # it can only be read by setting it
    os.umask(mask)
    return 0o666 & ~mask
