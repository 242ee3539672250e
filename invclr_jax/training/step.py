"""The training step: augment, encode, penalise, update; one compiled program."""

import contextlib
import functools
import gc
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from invclr_jax import parallel
from invclr_jax.models import network
from invclr_jax.randomness import stream
from invclr_jax.training.programs import Programs
from invclr_jax.training.state import Recipe, TrainState


def create_state(recipe: Recipe, programs: Programs | None = None) -> TrainState:
    """The state before the first step, a pure function of the recipe's seed.

    Args:
      recipe: the run's fixed parts.
      programs: those that are kept; None to compile.
    """
    # Unoptimised on CPUs, as it runs once; within another trace options are not allowed.
    quick = jax.default_backend() == "cpu" and not isinstance(recipe.key, jax.core.Tracer)
    options = {"xla_backend_optimization_level": 0} if quick else None
    create = jax.jit(functools.partial(_fresh_state, recipe), compiler_options=options)
    if programs is None:
        return create(recipe.key)
    device = jax.local_devices()[:1]
    return programs.get("first_state", create, (recipe.key,), device)(recipe.key)


def _fresh_state(recipe: Recipe, key: PRNGKeyArray) -> TrainState:
    method, images = recipe.method, jnp.zeros((2, *recipe.image_shape), recipe.dtype)
    params, statistics = method.init(stream(key, "network"), images)
    dim = network.output_dim(network.on_one_device(method.encoder), images)
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        params=params,
        statistics=statistics,
        opt_state=recipe.tx.init(params),
        method=method.init_state(params, statistics, stream(key, "method")),
        probe=recipe.probe.init(dim, images.dtype) if recipe.probe else {},
    )


def is_penalised(recipe: Recipe, step: int) -> bool:
    """Whether the penalty is part of this step."""
    penalty = recipe.method.penalty
    return penalty is not None and penalty.is_due(step)


def train_step(
    recipe: Recipe,
    penalised: bool,
    state: TrainState,
    rows: PyTree,
    indices: Int[Array, "n"],
    key: PRNGKeyArray,
) -> tuple[TrainState, dict[str, Array]]:
    """One update.

    Args:
      recipe: the run's fixed parts.
      penalised: whether the penalty is part of this step.
      state: the state before it.
      rows: the training set (or just this step's part of it): `image` and perhaps `label`.
      indices: this device's rows.
      key: the run's; the step's own key is folded from it.

    Returns:
      The state after it and metrics averaged over the devices.
    """
    batch = jax.tree.map(lambda array: array[indices], rows)
    loss_fn = jax.value_and_grad(recipe.method.loss, has_aux=True)
    (loss, outcome), grads = loss_fn(
        state.params,
        state.statistics,
        state.method,
        batch["image"],
        step=state.step,
        key=jax.random.fold_in(stream(key, "steps"), state.step),
        penalised=penalised,
    )
    grads = parallel.mean_over_devices(grads, recipe.axis)
    updates, opt_state = recipe.tx.update(grads, state.opt_state, state.params)
    metrics = {"loss": loss, **outcome.terms, "grad_norm": optax.tree.norm(grads)}
    probe = state.probe
    if recipe.probe is not None:
        z = outcome.representation
        probe, seen = recipe.probe.update(probe, z, batch["label"], recipe.axis)
        metrics |= seen
    new_state = TrainState(
        step=state.step + 1,
        params=optax.apply_updates(state.params, updates),
        statistics=parallel.mean_over_devices(outcome.statistics, recipe.axis),
        opt_state=opt_state,
        method=outcome.state,
        probe=probe,
    )
    return new_state, parallel.mean_over_devices(metrics, recipe.axis)


def pmapped_step(recipe: Recipe, penalised: bool, devices: parallel.Devices = None) -> Any:
    """One of a run's two programs, `(state, rows, indices, key) -> (state, metrics)`.

    The old state's memory is reused for the new one. The key is an argument, so that runs which
    differ in their seed alone share programs through the compilation cache.

    Args:
      recipe: the run's fixed parts.
      penalised: whether the penalty is part of the step.
      devices: the local devices to map over; None for all.
    """
    return jax.pmap(
        functools.partial(train_step, recipe, penalised),
        axis_name=recipe.axis,
        in_axes=(0, 0, 0, None),
        devices=devices,
        donate_argnums=0,
    )


def step_name(penalised: bool) -> str:
    """What `Programs` know a step by."""
    return "penalised_step" if penalised else "step"


def compile_steps(
    recipe: Recipe, devices: parallel.Devices = None, kept: Programs | None = None
) -> Callable:
    """The pmapped step, `(step, state, rows, indices) -> (state, metrics)`.

    Steps with and without the penalty are two programs, each compiled when it is first needed:
    cheaper than a branch on the device, and the host knows which one is due.

    Args:
      recipe: the run's fixed parts.
      devices: the local devices to map over; None for all.
      kept: programs of earlier runs; None to compile.
    """
    programs: dict[bool, Callable] = {}

    def program(due, arguments):
        mapped = pmapped_step(recipe, due, devices)
        if kept is None:
            return mapped
        return kept.get(step_name(due), mapped, arguments, devices or jax.local_devices())

    def step_fn(step, state, rows, indices):
        due, arguments = is_penalised(recipe, step), (state, rows, indices, recipe.key)
        with _no_garbage_collection():
            if due not in programs:
                programs[due] = program(due, arguments)
            return programs[due](*arguments)

    return step_fn


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disables garbage collection, which takes a fifth of the time in which JAX traces a step."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
