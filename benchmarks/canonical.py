"""Missing canonical correlation with few pairs: which estimate of its gradient works best?

W whitens d components with 2K rows. The fewer rows, the less the batch's own T knows: with 2K ≤ d
any rows can be whitened perfectly and W says nothing. On data of known correlations (see
`gaussian_pairs`) each remedy is judged by what counts: the true W after training. The record
also has the cosine of a single gradient with the true one, the cosine of the mean gradient with it
(1 without bias; an estimate, it may exceed 1), and the noise (see `benchmarks.estimators`). Then
the time and the memory of the term at ResNet50's size.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.estimators import gradient_noise
from benchmarks.gaussian_pairs import (
    Pairs,
    Way,
    by_ridge,
    by_running_moments,
    by_shrinkage,
    by_subspace,
    estimate,
    fresh_state,
)
from benchmarks.measure import Row, interleaved, medians
from invclr_jax.objectives import canonical

SIZES = ((256, 64), (64, 64), (32, 64), (16, 64), (64, 256))
"""(K, d) of the toy: 2K/d from 8 to 1/2."""
LARGE = (512, 2048)
DRAWS, STEPS, RATE, SETTLED = 64, 200, 0.1, 30
MB = 1e6


def rows(repeats: int) -> list[Row]:
    """One row per remedy and size, then time and memory at ResNet50's."""
    toy = [_toy_row(Pairs(*size), name, way) for size in SIZES for name, way in ways(*size).items()]
    return [*toy, *_cost(repeats)]


def ways(num_pairs: int, dim: int) -> dict[str, Way]:
    """The remedies by name."""
    return {
        **{f"ridge {ridge:g}": by_ridge(ridge) for ridge in (0.01, 0.03, 0.1, 0.3, 1, 3, 10)},
        f"subspace of {min(num_pairs // 2, dim)}": by_subspace(min(num_pairs // 2, dim)),
        "running moments, 0.9": by_running_moments(0.9),
        "running moments, 0.9, ridge 0.3": by_running_moments(0.9, 0.3),
        "shrinkage": by_shrinkage(),
    }


def _toy_row(pairs: Pairs, name: str, way: Way) -> Row:
    return Row(
        f"{name}, K={pairs.num_pairs}, d={pairs.dim}: true W after {STEPS} steps",
        float(pairs.missing(trained(pairs, way))),
        float(pairs.missing(pairs.start)),
        "before training",
        unit="(W)",
        details=quality(pairs, way) | {"least": pairs.least},
    )


def trained(pairs: Pairs, way: Way) -> jax.Array:
    """M after steps whose length falls from `RATE`·|M| as a cosine, whatever the gradient's."""
    gradient = estimate(pairs, way)

    def step(carry, i):
        matrix, state = carry
        (_, state), slope = gradient(matrix, jax.random.key(i), state)
        rate = RATE * 0.5 * (1 + jnp.cos(jnp.pi * i / STEPS)) * jnp.linalg.norm(matrix)
        return (matrix - rate * slope / jnp.linalg.norm(slope), state), None

    start = pairs.start, fresh_state(pairs.dim)
    return jax.jit(lambda start: jax.lax.scan(step, start, jnp.arange(STEPS))[0][0])(start)


def quality(pairs: Pairs, way: Way) -> dict[str, float]:
    """Cosines with the true gradient and noise, at the start and with settled running moments."""
    gradient, state, found = jax.jit(estimate(pairs, way)), fresh_state(pairs.dim), []
    for i in range(SETTLED + DRAWS):
        (_, state), slope = gradient(pairs.start, jax.random.key(i), state)
        found.append(np.asarray(slope, np.float64).ravel())
    slopes = np.stack(found[SETTLED:])
    truth = np.asarray(jax.grad(pairs.missing)(pairs.start), np.float64).ravel()
    truth /= np.linalg.norm(truth)
    halves = slopes[::2].mean(0), slopes[1::2].mean(0)
    length = np.sqrt(max(halves[0] @ halves[1], 0.0))  # of the mean, without its noise
    return {
        "cosine_of_a_step": float(np.mean(slopes @ truth / np.linalg.norm(slopes, axis=1))),
        "cosine_of_the_mean": float(slopes.mean(0) @ truth / length) if length else 0.0,
        "noise": gradient_noise(slopes),
    }


def _cost(repeats: int) -> list[Row]:
    """The term and its gradient in z, with the Gram matrix, as in our code, and the covariance."""
    keys = jax.random.split(jax.random.key(0))
    z, z_prime = (jax.random.normal(key, LARGE) for key in keys)
    programs = {
        name: jax.jit(jax.grad(functools.partial(way, ridge=0.01), (0, 1)))
        .lower(z, z_prime)
        .compile()
        for name, way in (("gram", canonical._by_gram), ("covariance", canonical._by_covariance))
    }
    contenders = {name: functools.partial(run, z, z_prime) for name, run in programs.items()}
    seconds = medians(interleaved(contenders, repeats=repeats))
    memory = {name: _temporary(run) for name, run in programs.items()}
    sizes = f"canonical penalty and its gradient in z, K={LARGE[0]}, d={LARGE[1]}"
    other = "Cholesky of size d"
    return [
        Row(sizes, seconds["gram"], seconds["covariance"], other),
        Row(f"{sizes}: temporary memory", memory["gram"], memory["covariance"], other, unit="MB"),
    ]


def _temporary(program: jax.stages.Compiled) -> float:
    """What a compiled program needs besides its arguments and results, in MB."""
    analysis = program.memory_analysis()
    assert analysis is not None  # CPUs, GPUs and TPUs all have it
    return analysis.temp_size_in_bytes / MB
