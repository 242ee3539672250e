import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from invclr_jax.training import optimizer
from tests.reference import relative_error


@pytest.mark.parametrize("epochs", [50, 1000])
def test_schedule_matches_golden(golden, precision, epochs):
    stored = golden("lars")
    expected = stored[f"schedule_T{epochs}"]
    schedule = optimizer.learning_rate(float(stored["base_lr"]), epochs)
    ours = jax.jit(jax.vmap(schedule))(jnp.arange(epochs, dtype=precision))
    assert relative_error(ours, expected) < (1e-12 if precision == np.float64 else 1e-6)


def test_schedule_ends_at_zero_and_stays_there():
    schedule = optimizer.learning_rate(3.0, 20)
    assert float(schedule(20.0)) == 0.0
    assert float(schedule(25.0)) == 0.0


def test_no_ramp_starts_at_base():
    assert float(optimizer.learning_rate(0.06, 100, ramp_epochs=0)(0.0)) == pytest.approx(0.06)


def test_schedule_by_step_and_by_epoch():
    by_epoch = optimizer.learning_rate(1.0, 10, ramp_epochs=0)
    smooth = optimizer.step_schedule(by_epoch, steps_per_epoch=4)
    stairs = optimizer.step_schedule(by_epoch, steps_per_epoch=4, granularity="epoch")
    np.testing.assert_allclose(smooth(6), by_epoch(1.5), rtol=1e-6)
    np.testing.assert_allclose(stairs(6), by_epoch(1.0), rtol=1e-6)


@pytest.mark.parametrize("rule", optimizer.RULES)
def test_lars_matches_golden(golden, precision, rule):
    stored = golden("lars")
    names = [str(name) for name in stored["names"]]
    rates = jnp.asarray(stored["lr"], precision)
    tx = optimizer.lars(
        lambda step: rates[step],
        momentum=float(stored["momentum"]),
        weight_decay=float(stored["weight_decay"]),
        trust_coefficient=float(stored["trust_coefficient"]),
        rule=rule,
    )
    params = {name: jnp.asarray(stored[f"init_{name}"], precision) for name in names}
    state, update = tx.init(params), jax.jit(tx.update)
    for step in range(len(rates)):
        grads = {name: jnp.asarray(stored[f"grads_{name}"][step], precision) for name in names}
        updates, state = update(grads, state, params)
        params = optax.apply_updates(params, updates)
        for name in names:
            error = relative_error(params[name], stored[f"{rule}_{name}"][step])
            assert error < (1e-12 if precision == np.float64 else 1e-5), (name, step)


@pytest.mark.parametrize("rule", optimizer.RULES)
def test_mask_leaves_vectors_to_plain_momentum(rule):
    params = {"kernel": jnp.full((2, 2), 3.0), "bias": jnp.full((2,), 3.0)}
    grads = jax.tree.map(jnp.ones_like, params)
    tx = optimizer.lars(
        0.5, weight_decay=0.1, rule=rule, mask=optimizer.decayed("batch_norm_and_bias")
    )
    updates, _ = tx.update(grads, tx.init(params), params)
    np.testing.assert_allclose(updates["bias"], -0.5)
    # |p| = 6, g + wd·p = 1.3 in all four entries; the two rules agree as g is parallel to p.
    np.testing.assert_allclose(updates["kernel"], -0.5 * 0.001 * 6 / 2.6 * 1.3, rtol=1e-5)


def test_sgd_is_the_textbook_recursion():
    tx = optimizer.sgd(0.1, momentum=0.9, weight_decay=0.01)
    params = expected = np.array([1.0, -2.0], np.float32)
    buffer, state = np.zeros(2), tx.init(jnp.asarray(params))
    for grad in ([0.5, 1.0], [-1.0, 0.25], [2.0, 0.0]):
        updates, state = tx.update(jnp.asarray(grad), state, jnp.asarray(params))
        params = optax.apply_updates(jnp.asarray(params), updates)
        buffer = 0.9 * buffer + np.array(grad) + 0.01 * expected
        expected = expected - 0.1 * buffer
    np.testing.assert_allclose(params, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: optimizer.lars(1.0, rule="torch"), "unknown LARS rule 'torch'"),
        (lambda: optimizer.learning_rate(-1.0, 10), "base > 0"),
        (lambda: optimizer.learning_rate(1.0, 0), "total_epochs > 0"),
        (lambda: optimizer.decayed("bias"), "unknown optimizer mask"),
        (lambda: optimizer.step_schedule(lambda e: e, 4, "batch"), "'step' or 'epoch'"),
    ],
)
def test_mistakes_get_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
