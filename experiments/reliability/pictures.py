"""Streams in which a picture is broken."""

import io
import logging
import pathlib
import shutil
from collections.abc import Callable

import jax
import numpy as np
from PIL import Image

from invclr_jax import data
from invclr_jax.data.order import batch_indices

COUNT, CLASSES, SIZE, BATCH = 48, 3, 16, 8
STEPS = 2 * COUNT // BATCH
"""Two epochs, so that the broken picture is met twice."""
VICTIM = "20.jpg"
WORKERS = (0, 2)

Streamed = dict[int, np.ndarray]
"""Row of the folder -> the picture that a step was given for it."""


def pictures(folder: pathlib.Path) -> dict:
    """Breaks one picture of a folder in each way of `BREAKS` and streams two epochs of it.

    With `refuse` the stream must end with a sentence that names the file. With `skip` every batch
    must come, another picture of its class in place of the broken one, all others unchanged, and
    the file must be named once.
    """
    whole = _folder(folder / "whole")
    victim = next(whole.rglob(VICTIM))
    expected = _stream(whole, "refuse", 0)
    figures: dict = {"tried": 0, "survived": 0, "lost": 0, "breaks": len(BREAKS), "failures": []}
    for name, broken in BREAKS.items():
        place = folder / "broken"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(whole, place)
        (place / victim.relative_to(whole)).write_bytes(broken(victim.read_bytes()))
        for workers in WORKERS:
            survived = _refuses(place, workers) and _skips(place, workers, expected)
            figures["tried"] += 1
            figures["survived" if survived else "lost"] += 1
            if not survived:
                figures["failures"].append(f"{name}, {workers} workers")
    return figures


def _folder(root: pathlib.Path) -> pathlib.Path:
    rng = np.random.default_rng(0)
    for number in range(COUNT):
        coarse = rng.integers(0, 256, (4, 5, 3), dtype=np.uint8)
        file = root / "train" / f"class{number % CLASSES}" / f"{number:02d}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(coarse).resize((60, 48)).save(file, quality=95)
    return root


def _load(place: pathlib.Path, on_error: str, workers: int) -> data.Split:
    options = {"size": SIZE, "on_error": on_error, "workers": workers, "statistics": 0}
    return data.load("stream", path=place, **options).train


def _stream(place: pathlib.Path, on_error: str, workers: int) -> Streamed:
    split = _load(place, on_error, workers)
    streamed: Streamed = {}
    with data.make_feed(split, seed=0, batch_size=BATCH, num_steps=STEPS) as feed:
        for step, (rows, _) in feed:
            images = np.asarray(jax.device_get(rows["image"])).reshape(BATCH, SIZE, SIZE, 3)
            streamed |= dict(
                zip(batch_indices(0, step, COUNT, BATCH).tolist(), images, strict=True)
            )
    return streamed


def _refuses(place: pathlib.Path, workers: int) -> bool:
    try:
        _stream(place, "refuse", workers)
    except ValueError as error:
        return VICTIM in str(error)
    except Exception:
        return False
    return False


def _skips(place: pathlib.Path, workers: int, expected: Streamed) -> bool:
    told, logger = _Told(), logging.getLogger("invclr_jax")
    logger.addHandler(told)
    logger.propagate = False
    try:
        found = _stream(place, "skip", workers)
    except Exception:
        return False
    finally:
        logger.removeHandler(told)
        logger.propagate = True
    labels = _load(place, "skip", 0).labels
    assert labels is not None
    others = [row for row in expected if not np.array_equal(found[row], expected[row])]
    named = sum(f"{VICTIM} cannot be read" in line for line in told.lines)
    if len(others) != 1 or named != 1:
        return False
    alike = np.flatnonzero(labels == labels[others[0]])
    return any(np.array_equal(found[others[0]], expected[row]) for row in alike.tolist())


class _Told(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a line."""
        self.lines.append(record.getMessage())


def _png(mode: str, size: tuple[int, int] = (60, 48)) -> bytes:
    file = io.BytesIO()
    Image.new(mode, size).save(file, "PNG")
    return file.getvalue()


def _huge(_: bytes) -> bytes:
    """A PNG file that says it has 100,000×100,000 pixels."""
    raw = bytearray(_png("RGB"))
    raw[16:24] = (100_000).to_bytes(4, "big") * 2
    return bytes(raw)


BREAKS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda raw: b"",
    "two bytes": lambda raw: raw[:2],
    "cut in its header": lambda raw: raw[:100],
    "cut in half": lambda raw: raw[: len(raw) // 2],
    "without its header": lambda raw: raw[100:],
    "text": lambda raw: b"<html>404 Not Found</html>",
    "noise": lambda raw: np.random.default_rng(1).bytes(len(raw)),
    "zeros in its header": lambda raw: raw[:20] + bytes(200) + raw[220:],
    "a GIF": lambda raw: b"GIF89a" + raw,
    "a PNG cut in half": lambda raw: _png("RGB")[:60],
    "16 bits a channel": lambda raw: _png("I;16"),
    "a decompression bomb": _huge,
}
