"""Streamed pictures: decoding against PyTorch's DataLoader, waiting of a device, and memory.

Every turn starts its own reading processes and is timed from its first batch on. The memory of 20
GB of pictures is measured in a process that may not allocate more than 2 GB.
"""

import io
import json
import multiprocessing
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np
from PIL import Image

from benchmarks.measure import Row, has_torch
from invclr_jax import data
from invclr_jax.data.decoding import cropped
from invclr_jax.data.streaming.files import Files
from invclr_jax.data.streaming.source import Source

SIZE, BATCH, BATCHES, WORKERS = 224, 64, 25, 2
PHOTOGRAPHS, SHAPES = 256, ((500, 375), (375, 500), (640, 480), (500, 333))
STEP, STEPS, STEP_BATCH = 0.05, 100, 16
_BILINEAR = Image.Resampling.BILINEAR
VIRTUAL, LIMIT = 20e9, 2e9
MB = 1e6


def rows(repeats: int) -> list[Row]:
    """Seconds for 1000 pictures, seconds that a step waits, and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        files = _photographs(pathlib.Path(folder))
        contenders: dict[str, Callable[[], float]] = {"ours": lambda: _seconds(_ours(files))}
        if has_torch():
            contenders["same"] = lambda: _seconds(_theirs(files, cropped))
            contenders["usual"] = lambda: _seconds(_theirs(files, usual))
        seconds = {name: [turn()] for name, turn in contenders.items()}
        for _ in range(repeats - 1):
            for name, turn in contenders.items():
                seconds[name].append(turn())
        waits = _waits(files)
    found = {name: statistics.median(turns) for name, turns in seconds.items()}
    work = f"1000 photographs to {SIZE}×{SIZE}, {WORKERS} processes"
    details = {"seconds": seconds}
    references = {
        "same": "PyTorch's DataLoader, the same decoding",
        "usual": "PyTorch's DataLoader, as torchvision decodes and crops",
    }
    return [
        *(
            Row(work, found["ours"], found.get(name), text, "≥ 1.0×", details=details)
            for name, text in references.items()
        ),
        Row(
            f"waiting of a step of {STEP * 1e3:.0f} ms for {STEP_BATCH} pictures, mean of {STEPS}",
            statistics.mean(waits) * 1e3,
            target="0 ms",
            unit="ms",
            details={"largest": max(waits) * 1e3},
        ),
        _memory(),
    ]


def _photographs(folder: pathlib.Path) -> list[pathlib.Path]:
    """JPEG files of the usual sizes: smooth shapes with some noise, about 50 kB each."""
    rng = np.random.default_rng(0)
    files = []
    for i in range(PHOTOGRAPHS):
        width, height = SHAPES[i % len(SHAPES)]
        coarse = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        image = np.asarray(Image.fromarray(coarse).resize((width, height)), np.int16)
        noisy = np.clip(image + rng.normal(0, 8, image.shape), 0, 255).astype(np.uint8)
        files.append(folder / f"{i}.jpg")
        Image.fromarray(noisy).save(files[-1], quality=90)
    return files


def usual(path: str, shape: tuple[int, int, int]) -> np.ndarray:
    """What torchvision's Resize and CenterCrop do: resize the shorter side, crop the centre."""
    with Image.open(path) as image:
        whole = image.convert("RGB")
    scale = shape[0] / min(whole.size)
    whole = whole.resize((round(whole.width * scale), round(whole.height * scale)), _BILINEAR)
    left, top = (whole.width - shape[1]) // 2, (whole.height - shape[0]) // 2
    return np.asarray(whole.crop((left, top, left + shape[1], top + shape[0])))


def _seconds(batches: Iterator) -> float:
    """Seconds for 1000 pictures, after the first batch."""
    next(batches)
    start = time.perf_counter()
    for _ in range(BATCHES):
        next(batches)
    taken = time.perf_counter() - start
    batches.close()  # type: ignore[attr-defined]
    return taken * 1000 / (BATCHES * BATCH)


def _split(source: Source) -> data.Split:
    return data.Split(data.Pictures(source, (SIZE, SIZE, 3), workers=WORKERS))


def _ours(files: list[pathlib.Path], batch: int = BATCH) -> Iterator:
    with data.make_feed(_split(Files(files)), seed=0, batch_size=batch, num_steps=10**6) as feed:
        for _, batch_on_device in feed:
            yield jax.block_until_ready(batch_on_device)


class _Decoded:
    """A data set for PyTorch's DataLoader."""

    def __init__(self, files: list[pathlib.Path], decode: Callable):
        self.files, self.decode = [str(file) for file in files], decode

    def __len__(self) -> int:
        return BATCH * (BATCHES + 8 * WORKERS)

    def __getitem__(self, row: int):
        import torch

        image = self.decode(self.files[row % len(self.files)], (SIZE, SIZE, 3))
        return torch.from_numpy(np.array(image))


def _theirs(files: list[pathlib.Path], decode: Callable) -> Iterator:
    import torch

    files_read: Any = _Decoded(files, decode)  # has what a data set needs, but not its class
    loader: Iterable = torch.utils.data.DataLoader(
        files_read,
        batch_size=BATCH,
        shuffle=True,
        num_workers=WORKERS,
        multiprocessing_context="spawn",
    )
    for batch in loader:
        yield jax.block_until_ready(jax.device_put(batch.numpy()))


def _waits(files: list[pathlib.Path]) -> list[float]:
    """Seconds for which a simulated device has no batch when it has finished a step.

    As in training, the host fetches the batch of the next step while the device works on one.
    """
    batches, waits = _ours(files, STEP_BATCH), []
    for _ in range(10):
        next(batches)
    free = time.perf_counter() + STEP  # when the device has finished what it was given
    for _ in range(STEPS):
        next(batches)
        ready = time.perf_counter()
        waits.append(max(ready - free, 0.0))
        free = max(ready, free) + STEP
        time.sleep(max(free - STEP - time.perf_counter(), 0.0))  # until it starts this step
    batches.close()  # type: ignore[attr-defined]
    return waits


# Memory -----------------------------------------------------------------------------------------


class Virtual:
    """20 GB of decoded pictures, of which only 16 are distinct."""

    def __init__(self):
        image = np.random.default_rng(0).integers(0, 256, (16, SIZE, SIZE, 3), dtype=np.uint8)
        self.contents = [self._encoded(each) for each in image]

    @staticmethod
    def _encoded(image: np.ndarray) -> bytes:
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG")
        return file.getvalue()

    def __len__(self) -> int:
        return int(VIRTUAL / (SIZE * SIZE * 3))

    def __getitem__(self, row: int) -> bytes:
        return self.contents[row % 16]

    def name(self, row: int) -> str:
        """Its number."""
        return f"picture {row}"


def _memory() -> Row:
    command = [sys.executable, "-m", "benchmarks.stream"]
    root = pathlib.Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return Row(
        f"peak memory of streaming {VIRTUAL / 1e9:.0f} GB, {WORKERS} workers and the process",
        sum(found["bytes"]) / MB,
        target=f"< {LIMIT / MB:.0f} MB",
        unit="MB",
        details=found,
    )


def _measure() -> dict:
    """Peak resident memory of this process and its workers after an eighth of an epoch."""
    resource.setrlimit(resource.RLIMIT_DATA, (int(LIMIT), int(LIMIT)))
    split = _split(Virtual())
    steps = len(split) // BATCH // 8
    with data.make_feed(split, seed=0, batch_size=BATCH, num_steps=steps) as feed:
        for step, batch in feed:
            jax.block_until_ready(batch)
            if step == steps - 4:
                workers = multiprocessing.active_children()
                peaks = [_peak("self"), *(_peak(str(process.pid)) for process in workers)]
    return {"bytes": peaks, "pictures": steps * BATCH}


def _peak(pid: str) -> int:
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    print(json.dumps(_measure()))
