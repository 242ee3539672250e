"""Sources: picture files, row groups of parquet, a data set prepared by tensorflow-datasets."""

import functools
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int32

CACHED_GROUPS = 20
"""Row groups of parquet that a process keeps; more than the `order.WINDOW` that are mixed."""


class Files:
    """Picture files."""

    def __init__(self, paths: Sequence[pathlib.Path]):
        self.paths = [str(path) for path in paths]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, row: int) -> str:
        return self.paths[row]

    def name(self, row: int) -> str:
        """The path."""
        return self.paths[row]


class Parquet:
    """A column of encoded pictures in parquet files, as Hugging Face writes them.

    Args:
      paths: the files, in order.
      column: the pictures: bytes, or records with a field `bytes`.
    """

    def __init__(self, paths: Sequence[pathlib.Path], column: str):
        import pyarrow.parquet

        self.paths, self.column = [str(path) for path in paths], column
        self._groups: list[tuple[str, int]] = []
        self.blocks: list[int] = []
        for path in self.paths:
            metadata = pyarrow.parquet.read_metadata(path)
            self._groups += [(path, group) for group in range(metadata.num_row_groups)]
            self.blocks += [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(self.blocks)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def _place(self, row: int) -> tuple[int, int]:
        group = int(np.searchsorted(self._starts, row, side="right")) - 1
        return group, row - int(self._starts[group])

    def __getitem__(self, row: int) -> bytes:
        group, offset = self._place(row)
        value = _read_group(*self._groups[group], self.column)[offset].as_py()
        return (value["bytes"] if isinstance(value, dict) else value) or b""

    def name(self, row: int) -> str:
        """The file and the row in it."""
        group, offset = self._place(row)
        path, number = self._groups[group]
        return f"row {offset} of group {number} of {path}"


@functools.lru_cache(maxsize=CACHED_GROUPS)
def _read_group(path: str, group: int, column: str) -> Any:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path, memory_map=True) as file:
        return file.read_row_group(group, columns=[column]).column(column).combine_chunks()


def parquet_labels(
    paths: Sequence[pathlib.Path], column: str
) -> tuple[Int32[np.ndarray, " n"], tuple[str, ...] | None]:
    """The classes in a column of parquet files, and their names if Hugging Face recorded them."""
    import pyarrow.parquet

    parts = []
    for path in paths:
        table = pyarrow.parquet.read_table(path, columns=[column])
        parts.append(table.column(column).to_numpy())
        if not np.issubdtype(parts[-1].dtype, np.integer):
            raise ValueError(
                f"the column {column!r} of {path} holds {table.schema.field(column).type}: labels "
                "must be integers from 0 (config.data.stream.label_column)"
            )
    noted = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
    features = noted.get("info", {}).get("features", {})
    names = features.get(column, {}).get("names")
    return np.concatenate(parts).astype(np.int32), tuple(names) if names else None


class Prepared:
    """A split of a data set that tensorflow-datasets has prepared as array_record.

    Args:
      folder: `…/name/version`.
      split: its name.
      column: the feature that holds the pictures.
    """

    def __init__(self, folder: pathlib.Path, split: str, column: str):
        self.folder, self.split, self.column = str(folder), split, column
        self._length = len(_prepared(self.folder, split, column))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, row: int) -> bytes:
        return _prepared(self.folder, self.split, self.column)[row][self.column]

    def name(self, row: int) -> str:
        """The folder, the split and the row in it."""
        return f"row {row} of {self.split} in {self.folder}"


@functools.lru_cache(maxsize=8)
def _prepared(folder: str, split: str, column: str) -> Any:
    """tfds' data source, opened once per process; the pictures in `column` stay encoded."""
    import tensorflow_datasets as tfds  # imported here because it takes a second

    builder = tfds.builder_from_directory(folder)
    decoders: Any = {column: tfds.decode.SkipDecoding()}
    try:
        return builder.as_data_source(split=split, decoders=decoders)
    except NotImplementedError:  # how tfds refuses formats without random access
        raise ValueError(
            f"{folder} is prepared in a format without random access: prepare it with "
            "--file_format=array_record"
        ) from None


def prepared_splits(folder: pathlib.Path) -> tuple[str, ...]:
    """Names of the splits."""
    import tensorflow_datasets as tfds

    return tuple(tfds.builder_from_directory(folder).info.splits)


def prepared_features(folder: pathlib.Path) -> Any:
    """The features by name."""
    import tensorflow_datasets as tfds

    return tfds.builder_from_directory(folder).info.features


def prepared_labels(
    folder: pathlib.Path, split: str, image_column: str, label_column: str
) -> Int32[np.ndarray, " n"]:
    """The classes of a split; every record is read once to get them."""
    source = _prepared(str(folder), split, image_column)
    return np.array([source[row][label_column] for row in range(len(source))], np.int32)
