"""The 3×3 convolutions of a ResNet18 and their gradients, one by one, compared with PyTorch's.

They are most of a step, so their ratio says how close to PyTorch's a plain step can come.
"""

import functools
import os
from typing import Any

import jax
import numpy as np
import torch

from benchmarks.measure import Row, interleaved, medians
from invclr_jax.models.conv import convolve

BATCH = 64
LAYERS = (
    # pixels per side, input and output channels, stride, how many a ResNet18 has
    (32, 64, 64, 1, 4),
    (32, 64, 128, 2, 1),
    (16, 128, 128, 1, 3),
    (16, 128, 256, 2, 1),
    (8, 256, 256, 1, 3),
    (8, 256, 512, 2, 1),
    (4, 512, 512, 1, 3),
)
CALLS = 10
"""Of each convolution in a turn: a single call is slow right after one of PyTorch's."""
ROLES = ("forward", "gradient in the input", "gradient in the kernel")


def rows(repeats: int) -> list[Row]:
    """One row per layer and role, and one for a whole ResNet18."""
    found = []
    for size, channels, features, stride, count in LAYERS:
        for role in ROLES:
            seconds = _measure(role, size, channels, features, stride, repeats)
            each = medians(seconds)
            work = f"{size}×{size}, {channels} to {features} channels, stride {stride}, {role}"
            details = {"seconds": seconds, "count": count}
            found.append(Row(work, each["ours"], each["torch"], "PyTorch", details=details))
    strided = [row for row in found if "stride 2" in row.work]
    total = f"of a ResNet18 (batch {BATCH}, one view), summed"
    return [_sum(f"all {total}", found), _sum(f"stride 2 {total}", strided, "≥ 1.0×"), *found]


def _sum(work: str, rows: list[Row], target: str = "") -> Row:
    ours = sum(row.details["count"] * row.ours for row in rows)
    theirs = sum(row.details["count"] * (row.theirs or 0.0) for row in rows)
    return Row(work, ours, theirs, "PyTorch", target)


def _measure(
    role: str, size: int, channels: int, features: int, stride: int, repeats: int
) -> dict[str, list[float]]:
    rng = np.random.default_rng(0)
    outputs = size // stride
    x, w, y = (
        rng.standard_normal(shape, dtype=np.float32)
        for shape in (
            (BATCH, size, size, channels),
            (3, 3, channels, features),
            (BATCH, outputs, outputs, features),
        )
    )
    contenders = {name: make(role, stride, x, w, y) for name, make in CONTENDERS.items()}
    return interleaved(contenders, repeats=repeats, warmup=2, calls=CALLS)


def ours(role: str, stride: int, x: np.ndarray, w: np.ndarray, y: np.ndarray) -> Any:
    """A function without arguments: what `role` says for images x, kernel w, cotangent y."""
    conv = functools.partial(convolve, stride=stride)
    programs: dict[str, tuple[Any, tuple[np.ndarray, np.ndarray]]] = {
        "forward": (conv, (x, w)),
        "gradient in the input": (
            lambda w, y: jax.linear_transpose(lambda x: conv(x, w), x)(y)[0],
            (w, y),
        ),
        "gradient in the kernel": (
            lambda x, y: jax.linear_transpose(lambda w: conv(x, w), w)(y)[0],
            (x, y),
        ),
    }
    program, operands = programs[role]
    return functools.partial(jax.jit(program), *jax.device_put(operands))


def pytorch(role: str, stride: int, x: np.ndarray, w: np.ndarray, y: np.ndarray) -> Any:
    """The same in PyTorch, channels last, its faster memory format for such pictures."""
    torch.set_num_threads(os.cpu_count() or 1)
    images, kernel, cotangent = (
        torch.from_numpy(array).permute(order).contiguous(memory_format=torch.channels_last)
        for array, order in ((x, (0, 3, 1, 2)), (w, (3, 2, 0, 1)), (y, (0, 3, 1, 2)))
    )
    if role == "forward":
        return lambda: torch.conv2d(images, kernel, None, stride, 1)
    wanted = [role == "gradient in the input", role == "gradient in the kernel", False]
    geometry = ([stride] * 2, [1, 1], [1, 1], False, [0, 0], 1)
    backward = torch.ops.aten.convolution_backward
    return lambda: backward(cotangent, images, kernel, None, *geometry, wanted)


CONTENDERS = {"ours": ours, "torch": pytorch}
