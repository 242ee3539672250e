import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from invclr_jax.objectives.contrastive import (
    info_nce,
    moco_loss,
    mutual_information_bound,
    nt_xent,
)
from invclr_jax.parallel import AXIS, mean_over_devices, shard_rows
from tests.reference import relative_error

LOSSES = {"infonce": jax.jit(info_nce), "ntxent": jax.jit(nt_xent)}
GRADIENTS = {name: jax.jit(jax.value_and_grad(loss, (0, 1))) for name, loss in LOSSES.items()}


def limit(dtype):
    return 1e-10 if dtype == np.float64 else 1e-5


def random_pair(seed, n=8, d=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, d))


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("tag", "index"), [("tau05", 0), ("tau02", 1)])
def test_golden_losses_and_gradients(golden, precision, name, tag, index):
    stored = golden("contrastive")
    p, q = (jnp.asarray(stored[view], precision) for view in "pq")
    loss, (d_p, d_q) = GRADIENTS[name](p, q, stored["tau"][index])
    assert loss.dtype == d_p.dtype == precision
    assert relative_error(loss, stored[f"{name}_{tag}"]) < limit(precision)
    assert relative_error(d_p, stored[f"{name}_{tag}_d_p"]) < limit(precision)
    assert relative_error(d_q, stored[f"{name}_{tag}_d_q"]) < limit(precision)


def test_golden_moco(golden, precision):
    stored = golden("contrastive")
    queries, keys, queue = (
        jnp.asarray(stored[f"moco_{name}"], precision) for name in ("queries_raw", "keys", "queue")
    )
    loss, gradient = jax.jit(jax.value_and_grad(moco_loss))(
        queries, keys, queue, stored["moco_tau"]
    )
    assert relative_error(loss, stored["moco_loss"]) < limit(precision)
    assert relative_error(gradient, stored["moco_d_queries_raw"]) < limit(precision)
    # Keys and queue may come raw: their lengths do not matter.
    longer = jax.jit(moco_loss)(queries, 3 * keys, 0.2 * queue, stored["moco_tau"])
    assert relative_error(longer, stored["moco_loss"]) < limit(precision)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**31), temperature=st.floats(0.05, 5))
def test_info_nce_is_equation_3(seed, temperature):
    p, q = random_pair(seed)
    scores = unit(p) @ unit(q).T / temperature
    expected = np.mean(logsumexp(scores, axis=1) - np.diag(scores))
    with jax.enable_x64(True):
        assert relative_error(LOSSES["infonce"](p, q, temperature), expected) < 1e-10


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**31), scale=st.floats(1e-3, 1e3))
def test_losses_ignore_order_and_length(seed, scale):
    p, q = random_pair(seed)
    order = np.random.default_rng(seed).permutation(len(p))
    with jax.enable_x64(True):
        for loss in LOSSES.values():
            expected = loss(p, q, 0.5)
            assert relative_error(loss(p[order], q[order], 0.5), expected) < 1e-10
            assert relative_error(loss(scale * p, q, 0.5), expected) < 1e-10
        # NT-Xent does not tell its views apart; InfoNCE does.
        apart = {
            name: relative_error(loss(q, p, 0.5), loss(p, q, 0.5)) for name, loss in LOSSES.items()
        }
        assert apart["ntxent"] < 1e-10 < apart["infonce"]


@pytest.mark.parametrize(("name", "loss"), [("infonce", info_nce), ("ntxent", nt_xent)])
def test_eight_devices_equal_one(x64, name, loss):
    p, q = random_pair(0, n=16)
    whole, gradients = GRADIENTS[name](p, q, 0.2)

    def on_device(p, q):
        of_pair = jax.value_and_grad(lambda *pair: loss(*pair, 0.2, axis=AXIS), (0, 1))
        local, gradients = of_pair(p, q)
        return mean_over_devices(local, AXIS), gradients

    # A row's gradient of the sum of eight local means is eight times that of the batch's mean.
    losses, shares = jax.pmap(on_device, axis_name=AXIS)(*(shard_rows(r, 8) for r in (p, q)))
    assert relative_error(losses, np.full(8, whole)) < 1e-12
    for share, gradient in zip(shares, gradients, strict=True):
        assert relative_error(share.reshape(gradient.shape) / 8, gradient) < 1e-12


def test_large_scores_and_zero_rows_stay_finite():
    p, q = (jnp.asarray(r, jnp.float32) for r in random_pair(0))
    p = p.at[2].set(0.0)
    for gradient in GRADIENTS.values():
        value, gradients = gradient(p, q, 1e-4)
        assert np.isfinite(value)
        assert np.isfinite(gradients).all()
        assert (gradients[0][2] == 0).all()


def test_low_precision_is_computed_in_float32():
    p, q = (jnp.asarray(r, jnp.bfloat16) for r in random_pair(0))
    loss = LOSSES["ntxent"](p, q, 0.5)
    assert loss.dtype == jnp.float32
    exact = LOSSES["ntxent"](*(r.astype(jnp.float32) for r in (p, q)), 0.5)
    assert relative_error(loss, exact) < 1e-6


def test_no_array_of_all_pairs_times_components():
    n, d = 64, 32
    p, q = random_pair(0, n, d)
    for loss in (info_nce, nt_xent):
        jaxpr = jax.make_jaxpr(jax.grad(loss))(p, q, 0.5)
        sizes = [v.aval.size for eqn in jaxpr.eqns for v in eqn.outvars]
        assert max(sizes) <= (2 * n) ** 2
        products = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "dot_general"]
        assert len(products) <= 3  # one forward, two for its derivative


def test_bound_of_uninformative_and_of_perfect_projections(x64):
    same, perfect = np.ones((6, 6)), np.eye(6)
    loss = LOSSES["infonce"]
    assert abs(mutual_information_bound(loss(same, same, 0.5), 6)) < 1e-12
    assert (
        relative_error(mutual_information_bound(loss(perfect, perfect, 1e-3), 6), np.log(6)) < 1e-12
    )


@pytest.mark.usefixtures("no_shape_checks")
def test_mistakes_are_named():
    p, q = random_pair(0)
    with pytest.raises(ValueError, match=r"\(8, 5\) and \(7, 5\) cannot be paired"):
        info_nce(p, q[:-1], 0.5)
    with pytest.raises(ValueError, match="temperature must be positive, got 0"):
        nt_xent(p, q, 0)
    with pytest.raises(ValueError, match=r"give a queue of shape \[m, 5\]"):
        moco_loss(p, q, np.ones((4, 6)), 0.5)
