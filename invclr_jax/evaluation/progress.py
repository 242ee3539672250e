"""A progress bar for every pass over data."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

Progress = Callable[[int], Any]
"""Called after each batch with the number of rows in it: `tqdm(total=n).update` is one."""


@contextlib.contextmanager
def bar(title: str, num_rows: int, *, shown: bool = True) -> Iterator[Progress | None]:
    """A context with a bar that shows the time left, on a terminal; None elsewhere.

    Args:
      title: what is computed.
      num_rows: number of rows at which it is full.
      shown: False for no bar at all.
    """
    if not shown or not sys.stderr.isatty():
        yield None
        return
    import tqdm

    options = {"unit": "row", "dynamic_ncols": True, "leave": False}
    with tqdm.tqdm(total=num_rows, desc=title, **options) as rows:
        yield rows.update
