import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from invclr_jax import config as configuration
from invclr_jax.training import optimizer, schedules
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
    smooth = schedules.step_schedule(by_epoch, steps_per_epoch=4)
    stairs = schedules.step_schedule(by_epoch, steps_per_epoch=4, granularity="epoch")
    np.testing.assert_allclose(smooth(6), by_epoch(1.5), rtol=1e-6)
    np.testing.assert_allclose(stairs(6), by_epoch(1.0), rtol=1e-6)


@pytest.mark.parametrize("rule", ["optax", "torchlars"])
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
    # |p| = 6, g + wd·p = 1.3 in all four entries; the rules agree as g is parallel to p.
    rate = 1.0 if rule == "clipped" else 0.5  # ratio/rate, times the rate
    np.testing.assert_allclose(updates["kernel"], -rate * 0.001 * 6 / 2.6 * 1.3, rtol=1e-5)


def test_clipped_lars_is_solo_learns_recursion(x64):
    """One parameter is clipped, the other is not, and the rate ends at zero."""
    rates, momentum, decay, trust = [0.3, 0.05, 0.0], 0.9, 0.1, 0.02
    rng = np.random.default_rng(0)
    params = {"small": rng.normal(size=(3, 2)), "large": 40 * rng.normal(size=(4, 2))}
    tx = optimizer.lars(
        lambda step: jnp.asarray(rates)[step],
        momentum=momentum,
        weight_decay=decay,
        trust_coefficient=trust,
        rule="clipped",
    )
    ours = jax.tree.map(jnp.asarray, params)
    state, buffers, clipped = tx.init(ours), dict.fromkeys(params, 0.0), set()
    for rate in rates:
        grads = {name: rng.normal(size=p.shape) for name, p in params.items()}
        updates, state = tx.update(jax.tree.map(jnp.asarray, grads), state, ours)
        ours = optax.apply_updates(ours, updates)
        for name, p in params.items():
            p_norm, g_norm = np.linalg.norm(p), np.linalg.norm(grads[name])
            ratio = trust * p_norm / (g_norm + decay * p_norm + 1e-8)
            if rate > 0:
                clipped.add(ratio > rate)
            scale = min(ratio / rate, 1) if rate else 1
            buffers[name] = momentum * buffers[name] + scale * (grads[name] + decay * p)
            params[name] = p - rate * buffers[name]
            np.testing.assert_allclose(ours[name], params[name], rtol=1e-12)
    assert clipped == {True, False}


def options_for(name, **changes):
    config = configuration.default_config()
    config.method, config.optimizer.name, config.optimizer.weight_decay = "simclr", name, 0.1
    config.update_from_flattened_dict({f"optimizer.{key}": v for key, v in changes.items()})
    return configuration.resolve(config).optimizer


def test_adamw_by_name_decays_what_the_mask_says():
    options = options_for("adamw", mask="batch_norm_and_bias")
    options.options.b1 = 0.5
    tx = optimizer.make_optimizer(options, lambda step: 0.01)
    params = {"kernel": jnp.full((2, 2), 3.0), "bias": jnp.full((2,), 3.0)}
    grads = {"kernel": jnp.full((2, 2), 0.2), "bias": jnp.full((2,), -0.4)}
    state = tx.init(params)
    for now in (grads, jax.tree.map(jnp.negative, grads)):
        updates, state = tx.update(now, state, params)
    # Two steps of g and -g: m = .5·.5g - .5g = -.25g over 1 - .5², v = g².
    adam = -0.25 / (1 - 0.5**2)
    np.testing.assert_allclose(updates["kernel"], -0.01 * (adam + 0.1 * 3), rtol=1e-4)
    np.testing.assert_allclose(updates["bias"], 0.01 * adam, rtol=1e-4)


def test_muon_by_name_moves_kernels_by_orthogonal_matrices():
    rng = np.random.default_rng(0)
    shapes = {"conv": (3, 3, 2, 4), "dense": (6, 5), "bias": (4,)}
    grads = {n: jnp.asarray(rng.normal(size=s), jnp.float32) for n, s in shapes.items()}
    params = jax.tree.map(jnp.zeros_like, grads)
    tx = optimizer.make_optimizer(options_for("muon"), lambda step: 1.0)
    updates, _ = tx.update(grads, tx.init(params), params)
    for name, (inputs, outputs) in {"conv": (18, 4), "dense": (6, 5)}.items():
        left, values, right = np.linalg.svd(np.asarray(grads[name]).reshape(inputs, outputs), False)
        moved = -np.asarray(updates[name]).reshape(inputs, outputs)
        inside = left.T @ moved @ right.T  # the same singular vectors, values near 1
        np.testing.assert_allclose(inside, np.diag(np.diagonal(inside)), atol=1e-3)
        assert np.diagonal(inside).min() > 0.6
        assert np.diagonal(inside).max() < 1.3
        assert values.max() / values.min() > 1.5
    nadam = 0.9 * 0.1 / (1 - 0.9**2) + 1  # optax's Adam looks ahead as its Muon does
    np.testing.assert_allclose(updates["bias"], -nadam * np.sign(grads["bias"]), rtol=1e-4)


def test_options_that_do_not_fit_get_a_sentence():
    options = options_for("sgd")
    options.options.nesterof = True
    with pytest.raises(ValueError, match=r"optimizer.options do not fit sgd: .*nesterof"):
        optimizer.make_optimizer(options, lambda step: 1.0)


def test_warmup_in_steps_then_a_cosine():
    options = options_for("sgd", schedule="warmup_cosine", base_learning_rate=2.0)
    options.schedule_options = {"warmup_steps": 4, "end": 0.5}
    schedule = schedules.make_schedule(options, steps_per_epoch=3, total_steps=12)
    ramp = [0, 0.5, 1.0, 1.5]
    cosine = [0.5 + 1.5 * (1 + np.cos(np.pi * k / 8)) / 2 for k in range(9)]
    np.testing.assert_allclose([schedule(i) for i in range(13)], ramp + cosine, rtol=1e-6)
    assert float(schedule(40)) == 0.5


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
        (
            lambda: schedules.warmup_cosine(1.0, warmup_steps=9, total_steps=9),
            "0 <= warmup_steps < total_steps .* got base=1.0, warmup_steps=9, total_steps=9",
        ),
        (lambda: schedules.step_schedule(lambda e: e, 4, "batch"), "'step' or 'epoch'"),
    ],
)
def test_mistakes_get_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
