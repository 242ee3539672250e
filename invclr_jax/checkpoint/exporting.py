"""Encoders for use elsewhere: safetensors with torch names, and programs of `jax.export`."""

import os
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from jax import export
from jaxtyping import Array

from invclr_jax.checkpoint import torch_names
from invclr_jax.checkpoint.encoder import Encoder
from invclr_jax.files import write_atomically
from invclr_jax.models import network
from invclr_jax.models.function import Function, is_traceable
from invclr_jax.models.resnet import ResNet
from invclr_jax.transforms.base import takes_images

PLATFORMS = ("cpu", "cuda", "tpu")


def to_safetensors(encoder: Encoder, path: str | os.PathLike[str]) -> None:
    """Writes the weights of a ResNet by torchvision's names.

    `load_state_dict(safetensors.torch.load_file(path), strict=False)` of a torchvision ResNet takes
    them; what it misses is the classifier `fc` alone. The normalisation of pictures is not in it.

    Args:
      encoder: with one of `invclr_jax.models.resnet`.
      path: the file to write.
    """
    if not isinstance(encoder.module, ResNet):
        raise ValueError(
            f"the encoder is a {type(encoder.module).__name__}: only ResNets have torchvision's "
            "names; use to_program for any other"
        )
    arrays = {}
    for route, leaf in torch_names.paths(encoder.variables):
        array = torch_names.torch_layout(np.asarray(leaf))
        arrays[torch_names.torch_name(route)] = np.ascontiguousarray(array)
    write_atomically(path, safetensors.numpy.save(arrays, {"format": "pt"}))


def to_program(
    encoder: Encoder,
    path: str | os.PathLike[str],
    *,
    shape: tuple[int, int, int],
    platforms: Sequence[str] = PLATFORMS,
) -> None:
    """Writes a program that needs JAX alone: `jax.export.deserialize(content).call(images)`.

    It holds the weights, takes float32 pictures in [0, 1], any number of them, and normalises them
    itself. Its convolutions are XLA's everywhere, so that no compiled code of this package is left.

    Args:
      encoder: any whose function JAX can trace.
      path: the file to write.
      shape: height, width and channels of the pictures.
      platforms: where it is to run.
    """
    (rows,) = export.symbolic_shape("n")
    images = jax.ShapeDtypeStruct((rows, *shape), jnp.float32)
    program = export.export(jax.jit(portable(encoder, shape)), platforms=tuple(platforms))(images)
    write_atomically(path, bytes(program.serialize()))


def portable(encoder: Encoder, shape: tuple[int, int, int]) -> Callable[[Array], Array]:
    """Pictures in [0, 1] -> features, in operations that every platform has.

    Args:
      encoder: any whose function JAX can trace.
      shape: height, width and channels of the pictures.
    """
    module = encoder.module
    plain = encoder.transform.untransformed if takes_images(encoder.transform) else jnp.asarray
    if isinstance(module, Function):
        function = module.function
        if not is_traceable(function, np.zeros((2, *shape), np.float32)):
            raise ValueError(
                "this encoder is a plain Python function, which no program can hold: write it in "
                "JAX to export it"
            )
        return lambda images: function(plain(images))
    if isinstance(module, ResNet):
        module = module.clone(conv="xla")
    return lambda images: network.evaluate(module, encoder.variables, plain(images))
