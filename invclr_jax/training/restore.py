"""A training state in checkpoints: the encoder by itself, and what training needs beside it."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import ml_collections

from invclr_jax.checkpoint import Checkpoints, Encoder
from invclr_jax.models import network
from invclr_jax.training.programs import Programs
from invclr_jax.training.state import Recipe, TrainState
from invclr_jax.training.step import create_state


def parts(state: TrainState) -> dict[str, dict]:
    """The state as the two array parts of a checkpoint."""
    modules = {
        name: {"params": params, **state.statistics[name]} for name, params in state.params.items()
    }
    training = {
        "step": state.step,
        "opt_state": state.opt_state,
        "method": state.method,
        "probe": state.probe,
    }
    return {"encoder": modules.pop("encoder"), "training": training | modules}


def from_parts(encoder: Mapping, training: Mapping) -> TrainState:
    """The inverse of `parts`."""
    rest = dict(training)
    kept = {name: rest.pop(name) for name in ("step", "opt_state", "method", "probe")}
    modules = {"encoder": encoder, **rest}
    params = {name: variables["params"] for name, variables in modules.items()}
    statistics = {
        name: {key: tree for key, tree in variables.items() if key != "params"}
        for name, variables in modules.items()
    }
    return TrainState(params=params, statistics=statistics, **kept)


def restore_or_create(
    recipe: Recipe, checkpoints: Checkpoints, programs: Programs | None = None
) -> tuple[TrainState, int]:
    """The newest checkpoint's state, or a fresh one, and its step."""
    newest = None
    if checkpoints.steps():
        newest = checkpoints.newest(parts(jax.eval_shape(lambda: create_state(recipe))))
    if newest is None:
        return create_state(recipe, programs), 0
    step, stored = newest
    return from_parts(**stored), step


def encoder_of(recipe: Recipe, state: TrainState, config: ml_collections.ConfigDict) -> Encoder:
    """The encoder of a training state, as `load_encoder` would give it."""
    variables = {"params": state.params["encoder"], **state.statistics["encoder"]}
    return Encoder(
        module=network.on_one_device(recipe.method.encoder),
        variables=jax.tree.map(jnp.asarray, variables),
        transform=recipe.method.transform,
        config=config,
        step=int(state.step),
    )
