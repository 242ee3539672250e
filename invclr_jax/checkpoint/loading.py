"""`load_encoder`: restores the encoder of a run without building an optimiser."""

import contextlib
import pathlib

import flax.linen as nn
import jax
import jax.numpy as jnp

from invclr_jax import importing
from invclr_jax.checkpoint import stored
from invclr_jax.checkpoint.encoder import Encoder
from invclr_jax.checkpoint.store import Checkpoints, DamagedCheckpointError
from invclr_jax.transforms.base import Transform

SHIPPED = pathlib.Path(__file__).parent / "shipped"
"""Folder of the encoders that come with the package, a small workdir each."""


def load_encoder(
    workdir: str | pathlib.Path,
    step: int | None = None,
    *,
    transform: Transform | None = None,
    module: nn.Module | None = None,
    trust: importing.Trust = (),
) -> Encoder:
    """Restores the encoder of a run, without building an optimiser.

    Args:
      workdir: the run's folder, or the name of an encoder that comes with the package:
        `cifar10-cpu` or `spirograph-cpu`.
      step: which checkpoint; None for the newest.
      transform: the transformation, if the run was trained with an object that has no name.
      module: the encoder's Flax module, likewise.
      trust: packages outside this one whose classes the checkpoint may name, `("my_lab",)`. They
        are imported, so they run: trust code that you know.
    """
    if not pathlib.Path(workdir).exists() and (SHIPPED / workdir).is_dir():
        workdir = SHIPPED / workdir
    with contextlib.closing(Checkpoints(workdir)) as checkpoints:
        step = _choose_step(checkpoints, workdir, step)
        values = checkpoints.config(step)
        try:
            config = stored.as_config(values)
        except (ValueError, TypeError, AttributeError) as error:
            raise DamagedCheckpointError(
                f"the config of step {step} in {workdir} is not one of a run ({error})"
            ) from None
        # Both before any array is read: a name that is refused costs nothing.
        transform = transform or stored.transform_of(config, trust)
        module = module or stored.encoder_of(config, trust)
        template = stored.variables_of(module, config)
        variables = checkpoints.restore(step, {"encoder": template})["encoder"]
    return Encoder(
        module=module,
        variables=jax.tree.map(jnp.asarray, variables),
        transform=transform,
        config=config,
        step=step,
    )


def _choose_step(checkpoints: Checkpoints, workdir, step: int | None) -> int:
    steps = checkpoints.steps()
    if not steps:
        raise FileNotFoundError(
            f"{workdir} holds no complete checkpoint yet: let the run reach its first one"
        )
    if step is not None and step not in steps:
        raise ValueError(f"{workdir} has no checkpoint of step {step}: there are {steps}")
    return steps[-1] if step is None else step
