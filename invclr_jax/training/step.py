"""The training step: augment, encode, penalise, update; one compiled program."""

import contextlib
import functools
import gc
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from invclr_jax import parallel
from invclr_jax.training import probe
from invclr_jax.training.methods import METHODS
from invclr_jax.training.state import Learner, TrainState, init_network, param_dtype


def create_state(learner: Learner, num_outputs: int = 1) -> TrainState:
    """The state before the first step, a pure function of `config.seed`.

    Args:
      learner: the run's fixed parts.
      num_outputs: of the online probe: classes, or numbers to regress.
    """
    key = run_key(learner)
    # Unoptimised on CPUs, as it runs once; within another trace options are not allowed.
    quick = jax.default_backend() == "cpu" and not isinstance(key, jax.core.Tracer)
    options = {"xla_backend_optimization_level": 0} if quick else None
    create = functools.partial(_fresh_state, learner, num_outputs)
    return jax.jit(create, compiler_options=options)(key)


def _fresh_state(learner: Learner, num_outputs: int, key: PRNGKeyArray) -> TrainState:
    network_key, method_key = jax.random.split(key)
    params, batch_stats = init_network(learner, network_key)
    method = METHODS[learner.config.method].init(learner, params, batch_stats, method_key)
    online = learner.config.online_probe.enabled
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        params=params,
        batch_stats=batch_stats,
        opt_state=learner.tx.init(params),
        method=method,
        probe=probe.init(learner, num_outputs, param_dtype(learner.config)) if online else {},
    )


def run_key(learner: Learner) -> PRNGKeyArray:
    """The key that all randomness of a run descends from."""
    return jax.random.key(learner.config.seed)


def is_penalised(learner: Learner, step: int) -> bool:
    """Whether the penalty is part of this step."""
    options = learner.config.penalty
    return options.weight > 0 and step % options.every == 0


def train_step(
    learner: Learner,
    penalised: bool,
    state: TrainState,
    rows: PyTree,
    indices: Int[Array, "n"],
    key: PRNGKeyArray,
) -> tuple[TrainState, dict[str, Array]]:
    """One update.

    Args:
      learner: the run's fixed parts.
      penalised: whether the penalty is part of this step.
      state: the state before it.
      rows: the training set (or just this step's part of it): `image` and perhaps `label`.
      indices: this device's rows.
      key: the run's, see `run_key`; the step's own key is folded from it.

    Returns:
      The state after it and metrics averaged over the devices.
    """
    batch = jax.tree.map(lambda array: array[indices], rows)
    key = jax.random.fold_in(key, state.step)
    loss_fn = jax.value_and_grad(METHODS[learner.config.method].loss, has_aux=True)
    (loss, outcome), grads = loss_fn(state.params, state, batch["image"], key, learner, penalised)
    grads = parallel.mean_over_devices(grads, learner.axis)
    updates, opt_state = learner.tx.update(grads, state.opt_state, state.params)
    metrics = {"loss": loss, **outcome.terms, "grad_norm": optax.tree.norm(grads)}
    online = state.probe
    if learner.config.online_probe.enabled:
        online, seen = probe.update(learner, online, outcome.representation, batch["label"])
        metrics |= seen
    new_state = TrainState(
        step=state.step + 1,
        params=optax.apply_updates(state.params, updates),
        batch_stats=parallel.mean_over_devices(outcome.batch_stats, learner.axis),
        opt_state=opt_state,
        method=outcome.method,
        probe=online,
    )
    return new_state, parallel.mean_over_devices(metrics, learner.axis)


def compile_steps(learner: Learner, devices: parallel.Devices = None) -> Callable:
    """The pmapped step, `(step, state, rows, indices) -> (state, metrics)`.

    Steps with and without the penalty are two programs, each compiled when it is first needed:
    cheaper than a branch on the device, and the host knows which one is due. The old state's memory
    is reused for the new one. The key is an argument of the programs, so that runs which differ in
    their seed alone share them through the compilation cache.

    Args:
      learner: the run's fixed parts.
      devices: the local devices to map over; None for all.
    """
    programs = {
        penalised: jax.pmap(
            functools.partial(train_step, learner, penalised),
            axis_name=learner.axis,
            in_axes=(0, 0, 0, None),
            devices=devices,
            donate_argnums=0,
        )
        for penalised in (False, True)
    }
    key = run_key(learner)

    def step_fn(step, state, rows, indices):
        with _garbage_left_alone():
            return programs[is_penalised(learner, step)](state, rows, indices, key)

    return step_fn


@contextlib.contextmanager
def _garbage_left_alone() -> Iterator[None]:
    """Stops the search for garbage, which takes a fifth of the time in which JAX traces a step."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
