"""Spirograph pictures: ours against the same formula over the full grid in PyTorch.

`python -m benchmarks.run --only=render`. A quarter of the formula's exponentials underflow,
which is slow in PyTorch, so a second reference bounds the exponents first.
"""

import functools

import jax
import numpy as np
import torch

from benchmarks.measure import Row, interleaved, medians
from benchmarks.torch_peer import render as peer
from invclr_jax.transforms.spirograph import SpirographTransform

PICTURES = 4096
FLOORS = {"PyTorch, full grid": None, "PyTorch, full grid, exponents ≥ -80": -80.0}


def rows(repeats: int) -> list[Row]:
    """Rendering alone, and with the gradient in alpha."""
    ours, theirs = _ours(), {name: _theirs(floor) for name, floor in FLOORS.items()}
    table = []
    for task in ("forward", "gradient"):
        contenders = {"ours": ours[task]} | {name: peers[task] for name, peers in theirs.items()}
        differences = {name: _difference(contenders[name](), ours[task]()) for name in theirs}
        turns = interleaved(contenders, repeats=repeats)
        for name in theirs:
            table.append(_row(task, name, turns, differences[name]))
    return table


def _row(task: str, name: str, turns: dict[str, list[float]], difference: float) -> Row:
    seconds = medians(turns)
    work = "forward" if task == "forward" else "forward and gradient in alpha"
    return Row(
        work=f"render {PICTURES} pictures, {work}",
        ours=seconds["ours"],
        theirs=seconds[name],
        reference=name,
        target="≥ 10×",
        details={
            "pictures": PICTURES,
            "seconds": {"ours": turns["ours"], "theirs": turns[name]},
            "images_per_second": {"ours": PICTURES / seconds["ours"]}
            | {"theirs": PICTURES / seconds[name]},
            "largest_difference": difference,
            "torch_threads": torch.get_num_threads(),
        },
    )


@functools.cache
def _inputs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, alpha and weights of the gradient's sum, in float32."""
    transform = SpirographTransform()
    x = transform.x.sample(jax.random.key(0), PICTURES)
    alpha, _ = transform.sample(jax.random.key(1), PICTURES)
    weights = jax.random.normal(jax.random.key(2), (PICTURES, transform.size, transform.size, 3))
    return np.array(x), np.array(alpha), np.array(weights)


def _ours():
    apply = SpirographTransform().apply

    def gradient(x, alpha, weights):
        pictures, pull = jax.vjp(functools.partial(apply, x), alpha)
        return pictures, pull(weights)[0]

    x, alpha, weights = map(jax.numpy.asarray, _inputs())
    return {
        "forward": functools.partial(jax.jit(apply), x, alpha),
        "gradient": functools.partial(jax.jit(gradient), x, alpha, weights),
    }


def _theirs(floor: float | None):
    x, alpha, weights = map(torch.from_numpy, _inputs())
    return {
        "forward": functools.partial(peer.forward, peer.join(x, alpha), floor),
        "gradient": functools.partial(peer.gradient, x, alpha, weights, floor),
    }


def _difference(theirs, ours) -> float:
    """Largest difference between the pictures, to show that both draw the same."""
    theirs, ours = (pair[0] if isinstance(pair, tuple) else pair for pair in (theirs, ours))
    return float(np.abs(np.asarray(theirs) - np.asarray(ours)).max())
