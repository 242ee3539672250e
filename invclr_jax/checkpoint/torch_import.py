"""`load_torch`: ResNets that PyTorch trained, as encoders."""

import os
import pathlib

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from invclr_jax.checkpoint import torch_file, torch_names
from invclr_jax.checkpoint.encoder import Encoder
from invclr_jax.models import network
from invclr_jax.transforms.base import Transform
from invclr_jax.transforms.normalise import Normalise


def load_torch(
    path: str | os.PathLike[str],
    module: nn.Module,
    transform: Transform | None = None,
    *,
    prefix: str | None = None,
) -> Encoder:
    """An encoder with the weights of a torchvision ResNet, without its classifier.

    Args:
      path: a `.safetensors` or `.pth` file with torchvision's names, also under a prefix
        (`backbone.`, `module.encoder_q.`) as timm, solo-learn and lightly keep them. Nothing in it
        is executed.
      module: the network: `invclr_jax.models.resnet.ResNet50(stem="standard")` for ImageNet's.
      transform: the encoder's; it normalises pictures as the network expects. None for none:
        pictures reach the network as they are.
      prefix: what the names begin with, where a file holds several networks.
    """
    path = pathlib.Path(path)
    arrays = torch_names.plain_names(torch_file.read(path), prefix, str(path))
    channels = arrays["conv1.weight"].shape[1] if "conv1.weight" in arrays else 3
    variables = variables_from(arrays, module, channels, str(path))
    if transform is None:
        transform = Normalise((0.0,) * channels, (1.0,) * channels)
    return Encoder(module=module, variables=variables, transform=transform)


def variables_from(
    arrays: dict[str, np.ndarray], module: nn.Module, channels: int, where: str
) -> PyTree:
    """The module's variables out of arrays by torchvision's names.

    Args:
      arrays: all of a backbone, and nothing else.
      module: what they are for.
      channels: of its pictures.
      where: the file, for the sentence if they do not fit.
    """
    pictures = jnp.zeros((2, 64, 64, channels))
    params, statistics, _ = jax.eval_shape(
        lambda: network.init(module, jax.random.key(0), pictures)
    )
    kind, left = type(module).__name__, dict(arrays)
    variables: dict = {}
    for route, leaf in torch_names.paths({"params": params, **statistics}):
        name = torch_names.torch_name(route)
        if name not in left:
            raise ValueError(
                f"{where} has no {name}, which {kind} needs: {torch_names.nearest(name, left)}"
            )
        array = torch_names.our_layout(left.pop(name))
        if array.shape != leaf.shape:
            raise ValueError(
                f"{name} of {where} has shape {array.shape} where {kind} needs {leaf.shape}: give "
                "a module of its depth, width and stem"
            )
        branch = variables
        for part in route[:-1]:
            branch = branch.setdefault(part, {})
        branch[route[-1]] = jnp.asarray(array)
    if left:
        raise ValueError(
            f"{where} has {next(iter(left))}, which {kind} does not have: give a module of its "
            "depth"
        )
    return variables
