"""The penalty held to tests/golden penalty and batchnorm_penalty: values and second derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.objectives.penalty import (
    clip_from_above,
    exact_penalty,
    moments_penalty,
    sampled_penalty,
)
from invclr_jax.transforms.base import Box
from tests.objectives.cases import CASES, golden_case, golden_encode, quick_jit
from tests.reference import relative_error

FILES = ("penalty", "batchnorm_penalty")


def limit(dtype, prefix):
    if dtype == np.float64:
        return 1e-10
    return 1e-3 if prefix.startswith("spiro") else 1e-4


def expanded(images, alpha):
    """Images at alpha and their derivative, `[K, H, W, 3]` and `[a, K, H, W, 3]`."""
    columns = jnp.eye(alpha.shape[1], dtype=alpha.dtype)[:, None] * jnp.ones_like(alpha)[None]
    push = lambda column: jax.jvp(images, (alpha,), (column,))  # noqa: E731
    return jax.vmap(push, out_axes=(None, 0))(columns)


@functools.cache
def compiled(low, high):
    """All terms and their gradients for transforms given by their expansion, which is all they use.

    One program serves all transforms with as many alphas, and both golden files.
    """
    box = Box(np.array(low), np.array(high))

    def terms(represent, alpha, alpha_prime, e, limits):
        sampled = sampled_penalty(represent, alpha, alpha_prime, e)
        return {
            "penalty": sampled,
            **{name: clip_from_above(sampled, limits[name]) for name in limits},
            "exact": moments_penalty(represent, alpha, box, e),
            "trace_exact": exact_penalty(represent, alpha, box),
        }

    @quick_jit
    def results(params, x, slopes, alpha, alpha_prime, e, limits):
        def of(params):
            def represent(moved):
                change = sum(
                    (moved - alpha)[:, j, None, None, None] * s for j, s in enumerate(slopes)
                )
                return golden_encode(params, x + change)

            return terms(represent, alpha, alpha_prime, e, limits)

        return of(params), jax.jacrev(of)(params)

    return results


@pytest.mark.parametrize("prefix", CASES)
def test_golden_values_and_gradients(golden, precision, prefix):
    for file in FILES:
        stored = golden(file)
        case = golden_case(stored, prefix, precision)
        limits = {
            name: stored[f"{prefix}_{name}_limit"].astype(precision)
            for name in ("clamp1000", "clamp_half")
        }
        x, slopes = quick_jit(functools.partial(expanded, case.images))(case.alpha)
        results = compiled(tuple(case.box.low), tuple(case.box.high))(
            case.params, x, slopes, case.alpha, case.alpha_prime, case.e, limits
        )
        for name, actual in named(*results).items():
            assert actual.dtype == precision
            error = relative_error(actual, stored[f"{prefix}_{name}"])
            assert error < limit(precision, prefix), f"{file} {name}: {error}"


def named(values, gradients):
    """Values and gradients by their names in the golden files."""
    arrays = dict(values)
    for name, gradient in gradients.items():
        arrays[f"{name}_d_W2" if "clamp" in name else f"d_{name}_d_W2"] = gradient["W2"]
    gradient = gradients["penalty"]
    arrays["d_penalty_d_W1_norm"] = np.linalg.norm(gradient["W1"])
    arrays["d_penalty_d_W1_rows"] = gradient["W1"][:: len(gradient["W1"]) // 8]
    if "bn_scale" in gradient:
        arrays["d_penalty_d_scale"] = gradient["bn_scale"]
        arrays["d_penalty_d_bias"] = gradient["bn_bias"]
    return arrays


def test_golden_through_a_transform(golden, x64):
    """The same with the renderer inside `represent`, as training has it."""
    stored = golden("batchnorm_penalty")
    case = golden_case(stored, "spiro_paper", np.float64)

    @quick_jit
    @jax.value_and_grad
    def penalty(params):
        represent = lambda alpha: golden_encode(params, case.images(alpha))  # noqa: E731
        return sampled_penalty(represent, case.alpha, case.alpha_prime, case.e)

    value, gradient = penalty(case.params)
    assert relative_error(value, stored["spiro_paper_penalty"]) < 1e-10
    assert relative_error(gradient["W2"], stored["spiro_paper_d_penalty_d_W2"]) < 1e-10
