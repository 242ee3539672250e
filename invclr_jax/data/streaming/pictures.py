"""An array of pictures that are read on demand."""

import concurrent.futures
import dataclasses
import logging
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, Integer, UInt8

from invclr_jax.data.decoding import Encoded, Shape, UnreadableError, cropped
from invclr_jax.data.streaming.source import Source

ON_ERROR = ("refuse", "skip")

MOST_TRIES = 100
"""Pictures tried in place of one that cannot be read."""


class Substitute(NamedTuple):
    """A picture that could not be read, why not, and the one that was read in its place."""

    name: str
    reason: str
    by: str


class Amiss:
    """Names pictures that could not be read, each once, and counts them."""

    def __init__(self):
        self.names: set[str] = set()

    def note(self, substitutes: Iterable[Substitute]) -> None:
        """Logs what is new."""
        for substitute in substitutes:
            if substitute.name not in self.names:
                self.names.add(substitute.name)
                text = "%s %s; %s is read in its place"
                logging.getLogger(__name__).warning(text, *substitute)

    def summarise(self) -> None:
        """Logs how many there were, if any."""
        if self.names:
            logging.getLogger(__name__).warning(
                "pictures that could not be read and were replaced by others of their class: %d",
                len(self.names),
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Pictures:
    """Stands for a uint8 array `[n, size, size, channels]`: `pictures[rows]` reads some of it.

    Attributes:
      source: the encoded pictures.
      shape_of_one: height, width and channels of a picture.
      on_error: `refuse` raises an error for a picture that cannot be read; `skip` reads the next
        one of its class in its place.
      workers: processes that read pictures for training; 0 for threads of this process.
      classes: of all pictures, to find another of the same class; None if there are none.
      rows: which pictures of the source these are, `[n]`; None for all.
      amiss: pictures that could not be read so far.
      decode: how an encoded picture gets its shape: `cropped` takes the middle, `squeezed` all.
    """

    source: Source
    shape_of_one: Shape
    on_error: str = "refuse"
    workers: int = 0
    classes: Int[np.ndarray, " all"] | None = None
    rows: Integer[np.ndarray, " n"] | None = None
    amiss: Amiss = dataclasses.field(default_factory=Amiss)
    decode: Callable[[Encoded, Shape], np.ndarray] = cropped

    def __post_init__(self):
        if self.on_error not in ON_ERROR:
            raise ValueError(f"on_error is {self.on_error!r}: use one of {', '.join(ON_ERROR)}")
        if self.workers < 0:
            raise ValueError(f"workers is {self.workers}: use 0 or more")

    def __len__(self) -> int:
        return len(self.source) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return (len(self), *self.shape_of_one)

    @property
    def ndim(self) -> int:
        """4, as for the array."""
        return 4

    @property
    def dtype(self) -> np.dtype:
        """uint8."""
        return np.dtype(np.uint8)

    def take(self, rows: Integer[np.ndarray, " some"]) -> "Pictures":
        """Some of the pictures; nothing is read."""
        chosen = np.arange(len(self.source)) if self.rows is None else self.rows
        return dataclasses.replace(self, rows=chosen[rows])

    def __getitem__(self, rows: Any) -> UInt8[np.ndarray, "*some h w c"]:
        """The pictures of an index, a slice or an array of indices, read by threads."""
        numbers = np.arange(len(self))[rows]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            read = list(pool.map(self.read, numbers.reshape(-1).tolist()))
        self.amiss.note(substitute for _, substitute in read if substitute is not None)
        images = np.array([image for image, _ in read], np.uint8)
        return images.reshape(*numbers.shape, *self.shape_of_one)

    def read(self, row: int) -> tuple[UInt8[np.ndarray, "h w c"], Substitute | None]:
        """One picture, and what was amiss if another was read in its place."""
        number = row if self.rows is None else int(self.rows[row])
        try:
            return self._decode(number), None
        except UnreadableError as error:
            if self.on_error == "refuse":
                raise ValueError(
                    f"{self.source.name(number)} {error}: replace or remove it, or set "
                    "on_error=skip (config.data.stream.on_error) to read others in place of such "
                    "pictures"
                ) from None
            return self._other(number, str(error))

    def _other(self, number: int, reason: str) -> tuple[np.ndarray, Substitute]:
        """The next picture of the same class that can be read."""
        if self.classes is None:
            alike = np.arange(len(self.source))
        else:
            alike = np.flatnonzero(self.classes == self.classes[number])
        after = np.roll(alike, -1 - int(np.searchsorted(alike, number)))[:-1]
        name = self.source.name
        for other in after[:MOST_TRIES].tolist():
            try:
                return self._decode(other), Substitute(name(number), reason, name(other))
            except UnreadableError:
                continue
        raise ValueError(
            f"{name(number)} {reason}, nor can the {min(len(after), MOST_TRIES)} pictures that "
            "were tried in its place: this does not look like a data set of pictures"
        )

    def _decode(self, number: int) -> np.ndarray:
        return self.decode(self.source[number], self.shape_of_one)
