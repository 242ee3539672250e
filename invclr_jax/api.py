"""`train`: one call from a configuration, or from your own objects, to a trained encoder."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import flax.linen as nn
import jax
import ml_collections
import optax

from invclr_jax import config as configuration
from invclr_jax import data
from invclr_jax.config.build import Own
from invclr_jax.evaluation import protocols
from invclr_jax.files import write_atomically
from invclr_jax.training import loop
from invclr_jax.training.programs import Programs
from invclr_jax.training.writers import Writer
from invclr_jax.transforms.base import Transform

CONFIG_FILE = "config.json"


def train(
    config: ml_collections.ConfigDict | str,
    workdir: str | pathlib.Path,
    *,
    encoder: nn.Module | None = None,
    head: nn.Module | None = None,
    transform: Transform | None = None,
    dataset: data.Dataset | None = None,
    tx: optax.GradientTransformation | None = None,
    schedule: optax.Schedule | None = None,
    writers: Sequence[Writer] | None = None,
    evaluate: loop.Evaluate | None = None,
    allow_changed_config: bool = False,
    programs: str | pathlib.Path | None = None,
) -> loop.Result:
    """Trains an encoder, resuming from the newest checkpoint in `workdir` if there is one.

    Whatever is None is built from the configuration. A checkpoint records an object by the import
    path of its class and its plain arguments, so that `load_encoder` can build it again; where that
    is impossible, `load_encoder` asks for the object.

    Args:
      config: the configuration, see `invclr_jax.config`, or the name of a shipped one.
      workdir: folder of checkpoints, metrics and the resolved configuration.
      encoder: any Flax module, images -> `[n, d]`, with or without batch norm or dropout. It may
        take `train` or `deterministic`.
      head: any Flax module from representations to projections.
      transform: any transformation, see `invclr_jax.transforms.base.Transform`.
      dataset: the data.
      tx: any optax transformation; its learning rate is its own.
      schedule: the learning rate by step of the optimiser that the configuration names.
      writers: where metrics go; None for JSON lines, TensorBoard and a progress line.
      evaluate: called with the current encoder and the data every `config.eval.every_steps`; None
        for the protocols that `config.eval` names.
      allow_changed_config: resume even if `workdir` holds another configuration.
      programs: folder that keeps compiled programs, so that a second run of the same shape starts
        at once; None for none. It must be as trustworthy as your own code. Only runs on CPUs, in
        one process, without parts of your own other than data, use it.

    Returns:
      The final state, the step reached, and the signal that stopped the run, if one did.
    """
    if isinstance(config, str):
        config = configuration.load(config)
    config = configuration.resolve(config)
    own = Own(encoder, head, transform, dataset, tx, schedule)
    dataset = dataset or configuration.load_data(config)
    config = configuration.describe(config, dataset, own)
    recipe = configuration.from_config(config, dataset, own)
    if evaluate is None and config.eval.every_steps:
        evaluate = periodic(config)
    with loop.writing_to(workdir):
        _claim(pathlib.Path(workdir), config, allow_changed_config)
    kept = _kept(programs, configuration.dependencies(config, dataset, recipe, own))
    return loop.run(
        recipe, config, workdir, dataset, writers=writers, evaluate=evaluate, programs=kept
    )


def _kept(
    folder: str | pathlib.Path | None, dependencies: Mapping[str, Any] | None
) -> Programs | None:
    """The programs of earlier runs, where this run may use them."""
    debugging = any(jax.config.values[f"jax_{name}"] for name in ("disable_jit", "debug_nans"))
    if jax.default_backend() != "cpu" or jax.process_count() > 1 or debugging:
        return None
    return Programs(folder, dependencies) if folder and dependencies is not None else None


def periodic(config: ml_collections.ConfigDict) -> loop.Evaluate:
    """The evaluation during training that `config.eval` asks for."""
    return protocols.periodic(
        config.eval.protocol.split(","),
        seed=config.seed,
        num_samples=config.eval.num_samples,
        limit=config.eval.limit,
    )


def _claim(workdir: pathlib.Path, config: ml_collections.ConfigDict, allow_changed: bool) -> None:
    """Writes the configuration into the workdir, or compares it with the one that is there."""
    path = workdir / CONFIG_FILE
    if path.exists() and not allow_changed:
        changed = configuration.differences(configuration.read(path), config)
        if changed:
            raise ValueError(
                f"{workdir} holds a run with another config:\n  " + "\n  ".join(changed) + "\n"
                "choose another workdir, or pass allow_changed_config to resume this one"
            )
    if jax.process_index() == 0:
        write_atomically(path, configuration.to_json(config) + "\n")
