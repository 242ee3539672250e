"""Measures of collapse against NumPy, on one device and on eight."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.methods.collapse import measures, warning
from invclr_jax.parallel import AXIS, shard_rows
from tests.objectives.losses import random_rows
from tests.reference import relative_error


@pytest.mark.parametrize("shape", [(16, 5), (8, 20)])
def test_against_numpy(x64, shape):
    p, q = random_rows(*shape), random_rows(*shape, seed=1)
    u, v = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (p, q))
    eigenvalues = np.linalg.eigvalsh(np.cov(u, rowvar=False, ddof=0))
    expected = {
        "projection_std": np.sqrt(u.var(0).sum()),
        "effective_rank": eigenvalues.sum() ** 2 / (eigenvalues**2).sum(),
        "positive_similarity": np.mean([a @ b for a, b in zip(u, v, strict=True)]),
    }
    one = measures(*map(jnp.asarray, (p, q)))
    eight = jax.pmap(lambda p, q: measures(p, q, AXIS), axis_name=AXIS)(
        *(shard_rows(x, 8) for x in (p, q))
    )
    for name, value in expected.items():
        assert relative_error(one[name], value) < 1e-12
        assert relative_error(eight[name], np.full(8, value)) < 1e-12


def test_extremes(x64):
    """Orthogonal rows in d directions; one point."""
    spread = measures(*2 * [jnp.concatenate([jnp.eye(4), -jnp.eye(4)])])
    np.testing.assert_allclose([*spread.values()], [1, 4, 1], rtol=1e-12)
    point = measures(jnp.ones((8, 4)), -jnp.ones((8, 4)))
    np.testing.assert_allclose([*point.values()], [0, 0, -1], atol=1e-12)


def test_no_gradient(x64):
    p, q = jnp.ones((4, 3)) + jnp.eye(4, 3), jnp.ones((4, 3))
    gradients = jax.grad(lambda p, q: sum(measures(p, q).values()), (0, 1))(p, q)
    assert not any(g.any() for g in gradients)


def test_the_warning_is_for_collapse_alone():
    healthy = {"projection_std": 0.9, "effective_rank": 20.0}
    assert warning(healthy) is None
    assert warning({"loss": 1.0}) is None
    for change in ({"projection_std": 0.001}, {"effective_rank": 1.01}):
        sentence = warning(healthy | change)
        assert sentence.startswith("the projections have collapsed: standard deviation")
        assert f"{next(iter(change.values())):.2g}" in sentence
