"""The whole training step against the authors' method in PyTorch, with and without the penalty.

Both do the same in the same precision (bfloat16 is PyTorch's autocast): rows of the data set, two
views, ResNet, projection head, NT-Xent, penalty on z/|z| at the first view, gradient, LARS. The
reference estimates the penalty as the paper does (one sign vector, 100 alpha', reverse mode); ours
uses the `forward` estimator, unbiased for the same quantity with a lower variance, at each step and
at every fourth step with four times the weight: even then its gradient is less noisy than the
paper's (`--only=estimators` shows both). PyTorch runs in the memory format that is faster for the
work at hand; not compiled, since `torch.compile` has no double backward pass. Our compilation is in
the record, not in the medians.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import ml_collections

from benchmarks.estimators import LAZY
from benchmarks.measure import Row, has_torch, interleaved, medians
from benchmarks.ours import ESTIMATOR, EVERY, Run, pictures, setting
from invclr_jax.transforms.base import Box

DTYPES = ("float32", "bfloat16")
TURNS = 2
"""Turns of eight steps each: they take longest."""


@dataclasses.dataclass(frozen=True)
class Work:
    """One encoder and batch, and the targets of its steps.

    Attributes:
      name: for the table.
      overrides: of the configuration, see `benchmarks.ours.setting`.
      targets: of the plain (False) and the penalised (True) step; those to be measured.
      ratios: whether to show what the penalty costs us.
    """

    name: str
    overrides: dict[str, Any]
    targets: dict[bool, str]
    ratios: bool = False


WORK = (
    Work(
        "ResNet18 width 64, batch 64, Spirograph",
        {"model__width": 64, "batch_size": 64},
        {False: "≥ 1.5×", True: "≥ 1.3×"},
        ratios=True,
    ),
    Work(
        "ResNet18 width 64, batch 64, Spirograph, bfloat16",
        {"model__width": 64, "batch_size": 64, "model__dtype": "bfloat16"},
        {False: "≥ 1.3×", True: "≥ 2×"},
    ),
    Work(
        "ResNet18 width 16, batch 128, Spirograph",
        {"model__width": 16, "batch_size": 128},
        {False: "≥ 1.3×", True: "≥ 1.3×"},
    ),
    Work(
        "ResNet50 width 64, batch 32, 32×32 images",
        {"model__name": "resnet50", "batch_size": 32, "data__name": "arrays"},
        {True: "≥ 1.6×"},
    ),
    Work(
        "ViT-Tiny, patch 4, batch 32, 32×32 images",
        {"model__name": "vit_tiny", "batch_size": 32, "data__name": "arrays"},
        {False: "≥ 1.0×"},
    ),
    Work(
        "ViT-Tiny, patch 4, batch 32, 32×32 images, bfloat16",
        {
            "model__name": "vit_tiny",
            "batch_size": 32,
            "data__name": "arrays",
            "model__dtype": "bfloat16",
        },
        {False: "≥ 1.0×"},
    ),
)


def rows(repeats: int) -> list[Row]:
    """Two rows per encoder, what the penalty costs, and what bfloat16 saves."""
    return [row for work in WORK for row in _measure(work, repeats)] + [_precisions(repeats)]


def _precisions(repeats: int) -> Row:
    """Our plain step in bfloat16 as a share of its time in float32."""
    size = {"model__width": 64, "batch_size": 64}
    runs = {dtype: make_run(setting(**size, model__dtype=dtype)) for dtype in DTYPES}
    contenders = {name: partial(run.step, penalised=False) for name, run in runs.items()}
    seconds = interleaved(contenders, repeats=repeats)
    for run in runs.values():
        run.close()
    found = medians(seconds)
    return Row(
        "plain step, ResNet18 width 64, batch 64, Spirograph, bfloat16 / float32",
        found["bfloat16"] / found["float32"],
        target="≤ 0.6",
        unit="× float32",
        details={"seconds": seconds},
    )


def make_run(config: ml_collections.ConfigDict) -> Run:
    """Ours; images are noise."""
    return Run(config, pictures() if config.data.name == "arrays" else None)


def make_peer(run: Run, *, channels_last: bool):
    """Theirs, as the configuration of our run describes it."""
    from benchmarks.torch_peer.simclr import Trainer

    box = run.recipe.method.transform.alpha
    assert isinstance(box, Box)
    return Trainer(run.config, run.rows, box.low, box.high, channels_last=channels_last)


def _measure(work: Work, repeats: int) -> list[Row]:
    run = make_run(setting(**work.overrides))
    first = {penalised: _seconds(partial(run.step, penalised)) for penalised in work.targets}
    formats = _faster_format(run, work) if has_torch() else {}
    contenders: dict[str, Callable[[], Any]] = {}
    for penalised in work.targets:
        contenders[f"ours {penalised}"] = partial(run.step, penalised)
        if penalised in formats:
            contenders[f"theirs {penalised}"] = partial(formats[penalised][1].step, penalised)
    lazy = set(work.targets) == {False, True}
    if lazy:
        contenders["ours lazy"] = partial(_steps, run, LAZY)
    seconds = interleaved(contenders, repeats=repeats, warmup=0)
    eights = _eights(run, repeats) if work.ratios else {}
    run.close()
    details = {
        penalised: {
            "seconds": {name: seconds[name] for name in seconds if name.endswith(str(penalised))},
            "first_step_with_compilation": first[penalised],
            "memory_format": formats[penalised][0] if formats else None,
            "memory_formats": formats[penalised][2] if formats else None,
            "estimator": {"ours": ESTIMATOR, "theirs": "sampled"} if penalised else None,
        }
        for penalised in work.targets
    }
    table = _beside(work, medians(seconds), details)
    if lazy:
        table.append(_lazy(work, seconds["ours lazy"], table[-1]))
    return [*table, *_ratios(work, seconds, eights)] if work.ratios else table


def _steps(run: Run, every: int) -> list:
    """As many steps, the first with the penalty."""
    return [run.step(penalised=index == 0) for index in range(every)]


def _lazy(work: Work, seconds: list[float], penalised: Row) -> Row:
    """The mean step with the penalty at every LAZY-th step against their penalised step."""
    return dataclasses.replace(
        penalised,
        work=f"penalised step, {work.name}, every={LAZY}, mean of {LAZY} steps",
        ours=statistics.median(seconds) / LAZY,
        details={"seconds": seconds},
    )


def _beside(work: Work, found: dict[str, float], details: dict[bool, dict]) -> list[Row]:
    return [
        Row(
            f"{'penalised' if penalised else 'plain'} step, {work.name}",
            found[f"ours {penalised}"],
            found.get(f"theirs {penalised}"),
            f"PyTorch, {details[penalised]['memory_format']}",
            target,
            details=details[penalised],
        )
        for penalised, target in work.targets.items()
    ]


def _ratios(
    work: Work, seconds: dict[str, list[float]], eights: dict[str, list[float]]
) -> list[Row]:
    """What the penalty costs us."""
    name, unit = f"penalised / plain step, {work.name}", "× plain"
    plain = statistics.median([*seconds["ours False"], *eights["plain"]])
    penalised, eight = (statistics.median(t) for t in (seconds["ours True"], eights["eight"]))
    return [
        Row(f"{name}, every=1", penalised / plain, target="≤ 1.5", unit=unit),
        Row(
            f"{name}, every={EVERY}, mean of {EVERY} steps",
            eight / EVERY / plain,
            target="≤ 1.1",
            unit=unit,
            details={"seconds": eights},
        ),
    ]


def _eights(run: Run, repeats: int) -> dict[str, list[float]]:
    """Seconds of EVERY steps of which one has the penalty, and of a plain step beside them."""
    contenders: dict[str, Callable[[], Any]] = {
        "eight": partial(_steps, run, EVERY),
        "plain": partial(run.step, penalised=False),
    }
    return interleaved(contenders, repeats=min(repeats, TURNS), warmup=0)


def _faster_format(run: Run, work: Work) -> dict[bool, tuple[str, Any, dict[str, float]]]:
    """The faster of PyTorch's memory formats for each kind of step, after one step to warm up.

    Returns:
      By kind: the format, its trainer, and the seconds of both.
    """
    peers = {
        "contiguous": make_peer(run, channels_last=False),
        "channels_last": make_peer(run, channels_last=True),
    }
    chosen = {}
    for penalised in work.targets:
        contenders = {name: partial(peer.step, penalised) for name, peer in peers.items()}
        found = medians(interleaved(contenders, repeats=1, warmup=1))
        name = min(found, key=lambda name: found[name])
        chosen[penalised] = (name, peers[name], found)
    return chosen


def _seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - start
