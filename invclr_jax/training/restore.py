"""A training state in checkpoints: the encoder by itself, and what training needs beside it."""

from collections.abc import Mapping

import jax

from invclr_jax import data
from invclr_jax.checkpoint import Checkpoints, Encoder
from invclr_jax.training.state import Learner, TrainState
from invclr_jax.training.step import create_state


def parts(state: TrainState) -> dict[str, dict]:
    """The state as the two array parts of a checkpoint."""
    encoder = {"params": state.params["encoder"], "batch_stats": state.batch_stats["encoder"]}
    training = {
        "step": state.step,
        "head": {"params": state.params["head"], "batch_stats": state.batch_stats["head"]},
        "opt_state": state.opt_state,
        "method": state.method,
        "probe": state.probe,
    }
    return {"encoder": encoder, "training": training}


def from_parts(encoder: Mapping, training: Mapping) -> TrainState:
    """The inverse of `parts`."""
    head = training["head"]
    return TrainState(
        step=training["step"],
        params={"encoder": encoder["params"], "head": head["params"]},
        batch_stats={"encoder": encoder["batch_stats"], "head": head["batch_stats"]},
        opt_state=training["opt_state"],
        method=training["method"],
        probe=training["probe"],
    )


def restore_or_create(
    learner: Learner, checkpoints: Checkpoints, dataset: data.Dataset
) -> tuple[TrainState, int]:
    """The newest checkpoint's state, or a fresh one, and its step."""
    labels = dataset.train.labels
    targets = 1 if labels is None or labels.ndim == 1 else labels.shape[1]
    num_outputs = dataset.num_classes or targets
    fresh = jax.eval_shape(lambda: create_state(learner, num_outputs))
    found = checkpoints.newest(parts(fresh))
    if found is None:
        return create_state(learner, num_outputs), 0
    step, stored = found
    return from_parts(**stored), step


def encoder_of(learner: Learner, state: TrainState) -> Encoder:
    """The encoder of a training state, as `load_encoder` would give it."""
    module = learner.encoder.clone(axis=None, groups=1)
    variables = {"params": state.params["encoder"], "batch_stats": state.batch_stats["encoder"]}
    return Encoder(learner.config, learner.transform, int(state.step), module, variables)
