"""Names and layouts of torchvision's ResNets, and of files that keep them under another name.

Ours `layer2_block0/downsample_conv/kernel`, height, width, inputs, outputs, is torchvision's
`layer2.0.downsample.0.weight`, outputs, inputs, height, width.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

_LEAVES = {
    ("params", "kernel"): "weight",
    ("params", "scale"): "weight",
    ("params", "bias"): "bias",
    ("batch_stats", "mean"): "running_mean",
    ("batch_stats", "var"): "running_var",
}
_LAYERS = {"downsample_conv": "downsample.0", "downsample_bn": "downsample.1"}
_BODY = re.compile(r"(conv1|bn1|layer\d+)\.")
_FIRST = "layer1.0.conv1.weight"
# nn.Sequential(*resnet.children()), as lightly keeps backbones: with or without pooling after bn1.
_SEQUENCES = {
    "4.0.conv1.weight": ("conv1", "bn1", "", "", "layer1", "layer2", "layer3", "layer4"),
    "3.0.conv1.weight": ("conv1", "bn1", "", "layer1", "layer2", "layer3", "layer4"),
}


def torch_name(path: tuple[str, ...]) -> str:
    """The torch name of one of our variables.

    Args:
      path: collection, layers and leaf, such as `("params", "stem_conv", "kernel")`.
    """
    collection, *layers, leaf = path
    parts = []
    for layer in layers:
        block = re.fullmatch(r"(layer\d+)_block(\d+)", layer)
        parts.append(f"{block[1]}.{block[2]}" if block else _LAYERS.get(layer, layer))
    name = ".".join(parts).replace("stem_conv", "conv1").replace("stem_bn", "bn1")
    return f"{name}.{_LEAVES[collection, leaf]}"


def torch_layout(array: np.ndarray) -> np.ndarray:
    """Kernels with outputs and inputs first; other arrays as they are."""
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array


def our_layout(array: np.ndarray) -> np.ndarray:
    """Kernels with outputs last; other arrays as they are."""
    return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array


def paths(variables: PyTree) -> list[tuple[tuple[str, ...], Any]]:
    """Every variable with its path: arrays, or shapes of arrays."""
    leaves = jax.tree_util.tree_leaves_with_path(variables)
    return [(tuple(part.key for part in path), leaf) for path, leaf in leaves]


def plain_names(
    arrays: Mapping[str, np.ndarray], prefix: str | None, where: str
) -> dict[str, np.ndarray]:
    """The backbone's arrays by torchvision's names, without classifier and heads.

    Args:
      arrays: of a file.
      prefix: what the backbone's names begin with; None to find it.
      where: the file, for the sentence if there is no ResNet, or if there are several.
    """
    prefix = _find_prefix(arrays, where) if prefix is None else prefix
    names = {n.removeprefix(prefix): array for n, array in arrays.items() if n.startswith(prefix)}
    for first, layers in _SEQUENCES.items():
        if first in names:
            names = {_renamed(name, layers): array for name, array in names.items()}
    return {
        name: array
        for name, array in names.items()
        if _BODY.match(name) and not name.endswith("num_batches_tracked")
    }


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint at the most similar name."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0)
    return f"the nearest name is {close[0]}" if close else "it is empty"


def _renamed(name: str, layers: tuple[str, ...]) -> str:
    index, _, rest = name.partition(".")
    known = index.isdigit() and int(index) < len(layers)
    return f"{layers[int(index)]}.{rest}" if known else name


def _find_prefix(arrays: Mapping[str, np.ndarray], where: str) -> str:
    found = sorted(
        {
            name.removesuffix(first)
            for first in (_FIRST, *_SEQUENCES)
            for name in arrays
            if name == first or name.endswith("." + first)
        }
    )
    if not found:
        raise ValueError(
            f"{where} has no {_FIRST} under any prefix, so it is not a ResNet with torchvision's "
            "names: " + nearest(_FIRST, arrays)
        )
    if len(found) > 1:
        listed = ", ".join(repr(prefix) for prefix in found)
        raise ValueError(f"{where} holds several networks: choose one by prefix, one of {listed}")
    return found[0]
