"""Mean, spread and cost of the penalty's estimators, for one encoder and one batch.

The means of the first four agree up to their standard errors; `finite` measures what they
approximate to first order. A step is a gradient of the penalty and of z, from one forward pass. The
noise of a gradient is the root of its variance, summed over all parameters, divided by the norm of
its mean: it says how much of an update is chance, which the spread of the value does not.
"""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from benchmarks.measure import Row, interleaved, medians
from invclr_jax.models.resnet import ResNet18
from invclr_jax.objectives.penalty import ESTIMATORS, Penalty, make_estimator
from invclr_jax.transforms.base import Box
from invclr_jax.transforms.colour import colour_jitter

BATCH, SIZE, WIDTH, DRAWS, GRADIENTS = 32, 16, 8, 200, 100
PAPER = "sampled"
LAZY = 4
"""`penalty.every` at which the gradient of `forward` is still less noisy than the paper's."""


def rows(repeats: int) -> list[Row]:
    """Four rows per estimator, each beside the paper's, after the step without a penalty."""
    encoder, variables, images, box, alpha = _setting()

    def represent(params, alpha):
        z, updates = encoder.apply(
            {**variables, "params": params},
            colour_jitter(images, alpha),
            train=True,
            mutable=["batch_stats"],
        )
        return z, updates

    @partial(jax.jit, static_argnames="estimator")
    def value(params, key, estimator):
        term = Penalty(estimator=make_estimator(estimator))
        noise = term.estimator.draw(key, BATCH, box=box, dim=encoder.representation_dim)
        penalty, z, _ = term(partial(represent, params), alpha, noise, box=box)
        return penalty, jnp.mean(z**2)

    plain = jax.jit(jax.grad(lambda params: jnp.mean(represent(params, alpha)[0] ** 2)))
    gradient = jax.jit(
        jax.grad(lambda params, key, estimator: sum(value(params, key, estimator))),
        static_argnames="estimator",
    )
    slope = jax.jit(
        jax.grad(lambda params, key, estimator: value(params, key, estimator)[0]),
        static_argnames="estimator",
    )
    params, keys = variables["params"], jax.random.split(jax.random.key(2), DRAWS)
    values = {name: np.array([value(params, key, name)[0] for key in keys]) for name in ESTIMATORS}
    noise = {
        name: gradient_noise(slope(params, key, name) for key in keys[:GRADIENTS])
        for name in ESTIMATORS
    }
    seconds = medians(
        interleaved(
            {"plain": partial(plain, params)}
            | {name: partial(gradient, params, keys[0], name) for name in ESTIMATORS},
            repeats=repeats,
        )
    )
    sizes = f"ResNet18 width {WIDTH}, {SIZE}×{SIZE}, batch {BATCH}"
    return [
        Row(f"gradient step without penalty, {sizes}", seconds["plain"]),
        *(row for name in ESTIMATORS for row in _rows_of(name, values, noise, seconds)),
        Row(
            f"forward, every={LAZY}: noise of the gradient",
            lazy_noise(noise["forward"], LAZY),
            noise[PAPER],
            PAPER,
            unit="× its mean",
        ),
    ]


def _setting():
    """A random encoder in train mode (batch norm couples the samples) and blurred noise."""
    rng = np.random.default_rng(0)
    coarse = rng.random((BATCH, SIZE // 4, SIZE // 4, 3), np.float32)
    images = jnp.asarray(coarse.repeat(4, axis=1).repeat(4, axis=2))
    encoder = ResNet18(width=WIDTH)
    variables = encoder.init(jax.random.key(0), images)
    box = Box(np.array([0.6, 0.6, 0.6, -0.1]), np.array([1.4, 1.4, 1.4, 0.1]))
    return encoder, variables, images, box, box.sample(jax.random.key(1), BATCH)


def lazy_noise(noise: float, every: int) -> float:
    """The noise if one step in `every` has the gradient, times `every`, and the others none.

    E|kg|²/k = k(1 + noise²)|E g|², of which |E g|² is the mean's.
    """
    return math.sqrt(every * (1 + noise**2) - 1)


def gradient_noise(gradients: Iterable[Any]) -> float:
    """√(E|g - E g|²)/|E g| of gradients as trees, unbiased in both squares."""
    flat = np.stack([np.asarray(ravel_pytree(g)[0], np.float64) for g in gradients])
    variance = np.var(flat, axis=0, ddof=1).sum()
    return float(np.sqrt(variance / (np.sum(flat.mean(0) ** 2) - variance / len(flat))))


def _rows_of(
    name: str,
    values: dict[str, np.ndarray],
    noise: dict[str, float],
    seconds: dict[str, float],
) -> list[Row]:
    mean, spread = values[name].mean(), values[name].std()
    details = {"draws": DRAWS, "standard_error": float(spread / np.sqrt(DRAWS))}
    papers = float(values[PAPER].std())
    return [
        Row(f"{name}: mean", float(mean), unit="(penalty)", details=details),
        Row(f"{name}: standard deviation", float(spread), papers, PAPER, unit="(penalty)"),
        Row(f"{name}: noise of the gradient", noise[name], noise[PAPER], PAPER, unit="× its mean"),
        Row(f"{name}: gradient step", seconds[name], seconds[PAPER], PAPER),
    ]
