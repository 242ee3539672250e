"""Transforms: affine maps with their gradient against kornia's, compositions, corruptions.

`python -m benchmarks.run --only=transforms`. Kornia does not antialias; neither does the first of
our affine rows, so that both compute the same.
"""

import functools
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import Row, interleaved, medians
from invclr_jax.transforms import corruptions
from invclr_jax.transforms.base import Compose
from invclr_jax.transforms.geometry import affine
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.normalise import Normalise

PICTURES, SIZE, CORRUPTED, SEVERITY = 512, 32, 10_000, 3
CALLS = 20
"""Of work that takes milliseconds, in each turn."""
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


def rows(repeats: int) -> list[Row]:
    """Seconds for 512 pictures of 32×32, and for 10,000 corrupted ones."""
    return [*_affine(repeats), _composition(repeats), *_corruptions()]


def inputs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pictures, alpha and the weights of the gradient's sum, in float32."""
    rng = np.random.default_rng(0)
    alpha = rng.uniform(-0.1, 0.1, (PICTURES, 6))
    alpha[:, 3] = np.abs(alpha[:, 3])  # enlarging: nothing to antialias
    shape = (PICTURES, SIZE, SIZE, 3)
    return tuple(v.astype(np.float32) for v in (rng.random(shape), alpha, rng.normal(size=shape)))  # type: ignore[return-value]


def ours(*, antialias: bool) -> Callable[[], Any]:
    """Pictures and the gradient in alpha of their weighted sum."""
    images, alpha, weights = map(jnp.asarray, inputs())

    @jax.jit
    def gradient(images, alpha, weights):
        warp = functools.partial(affine, images, antialias=antialias)
        pictures, pull = jax.vjp(warp, alpha)
        return pictures, pull(weights)[0]

    return functools.partial(gradient, images, alpha, weights)


def theirs() -> Callable[[], Any]:
    """The same with kornia, which must be installed."""
    import torch

    from benchmarks.torch_peer import affine as peer

    images, alpha, weights = map(torch.from_numpy, inputs())
    images, weights = (v.permute(0, 3, 1, 2).contiguous() for v in (images, weights))
    return functools.partial(peer.gradient, images, alpha, weights)


def _affine(repeats: int) -> list[Row]:
    contenders = {"plain": ours(antialias=False), "antialiased": ours(antialias=True)}
    found = importlib.util.find_spec("kornia") is not None
    details: dict[str, Any] = {}
    if found:
        contenders["kornia"] = theirs()
        pairs = zip(contenders["kornia"](), contenders["plain"](), strict=True)
        pictures, gradients = ([np.asarray(v) for v in pair] for pair in pairs)
        apart = np.abs(pictures[0].transpose(0, 2, 3, 1) - pictures[1]).max()
        details["largest_difference_of_pictures"] = float(apart)
        scale = np.abs(gradients[1]).max()
        details["largest_difference_of_gradients"] = float(
            np.abs(gradients[0] - gradients[1]).max() / scale
        )
    else:
        print("kornia is not installed for comparison: pip install kornia")
    seconds = interleaved(contenders, repeats=repeats, calls=CALLS)
    median = medians(seconds)
    work = f"affine maps of {PICTURES} pictures with the gradient in alpha"
    return [
        Row(
            work if name == "plain" else f"{work}, antialiased",
            median[name],
            median.get("kornia"),
            "kornia, not antialiased" if found else "",
            "≥ 3×" if name == "plain" else "",
            details=details | {"seconds": seconds},
        )
        for name in ("plain", "antialiased")
    ]


def _composition(repeats: int) -> Row:
    """The CIFAR transform with its gradient in alpha, in one piece and composed of two."""
    images = jnp.asarray(255 * inputs()[0], jnp.uint8)
    whole = ImageTransform(SIZE, MEAN, STD)
    parts = Compose([ImageTransform(SIZE, (0, 0, 0), (1, 1, 1)), Normalise(MEAN, STD)])

    def run(transform):
        alpha, beta = transform.sample(jax.random.key(0), PICTURES)

        @jax.jit
        def gradient(images, alpha, beta):
            return jax.grad(lambda a: (transform.apply(images, a, beta) ** 2).sum())(alpha)

        return functools.partial(gradient, images, alpha, beta)

    contenders = {"composed": run(parts), "whole": run(whole)}
    seconds = interleaved(contenders, repeats=repeats, calls=CALLS)
    median = medians(seconds)
    return Row(
        f"crop, jitter, normalise {PICTURES} pictures with the gradient in alpha, composed",
        median["composed"],
        median["whole"],
        "ours in one piece",
        "≥ 0.95×",
        details={"seconds": seconds},
    )


def _corruptions() -> list[Row]:
    images = np.random.default_rng(0).integers(0, 256, (CORRUPTED, SIZE, SIZE, 3), np.uint8)
    seconds = {}
    for name in corruptions.NAMES:
        call = functools.partial(corruptions.corrupt, name=name, severity=SEVERITY)
        call(images[:1000], key=jax.random.key(0))  # compiles
        start = time.perf_counter()
        call(images, key=jax.random.key(0))
        seconds[name] = time.perf_counter() - start
    slowest = max(seconds, key=lambda name: seconds[name])
    work = f"corrupt {CORRUPTED} pictures, severity {SEVERITY}"
    return [
        Row(f"{work}, all fifteen", sum(seconds.values()), details={"seconds": seconds}),
        Row(f"{work}, the slowest ({slowest})", seconds[slowest]),
    ]
