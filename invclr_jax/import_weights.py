"""Turns weights trained with PyTorch into a run's folder.

    invclr import --arch=resnet50 --input=weights.safetensors --workdir=runs/imported
    invclr import --arch=resnet18 --stem=cifar --size=32 --input=last.pth --workdir=runs/imported

The file is safetensors or `.pth` with torchvision's names, also under a prefix as timm, solo-learn
and lightly keep them; nothing in it is executed. Every other command takes the folder.
"""

import pathlib

import jax
import numpy as np
from absl import flags

from invclr_jax import cli
from invclr_jax import config as configuration
from invclr_jax.checkpoint import Checkpoints, stored
from invclr_jax.checkpoint.torch_import import load_torch
from invclr_jax.models.build import ENCODERS

_FORMAT = flags.DEFINE_enum("format", "torchvision", ["torchvision"], "Whose names the file has.")
_ARCH = flags.DEFINE_enum(
    "arch", None, [name for name in ENCODERS if name.startswith("resnet")], "Which network.",
    required=True,
)  # fmt: skip
_INPUT = flags.DEFINE_string("input", None, ".safetensors or .pth file.", required=True)
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder to make.", required=True)
_STEM = flags.DEFINE_enum("stem", "standard", ["standard", "cifar"], "First layers.")
_SIZE = flags.DEFINE_integer("size", 224, "Side of the pictures in pixels.", lower_bound=1)
_WIDTH = flags.DEFINE_integer("width", 64, "Channels of the first stage.", lower_bound=1)
_MEAN = flags.DEFINE_list("mean", ["0.485", "0.456", "0.406"], "Of each channel; ImageNet's.")
_STD = flags.DEFINE_list("std", ["0.229", "0.224", "0.225"], "Of each channel; ImageNet's.")
_PREFIX = flags.DEFINE_string("prefix", None, "What names begin with, if there are several.")


def main() -> int:
    """Reads the weights and saves them as the checkpoint of step 0."""
    config = configuration.default_config()
    config.model.name, config.model.width, config.model.stem = (
        _ARCH.value,
        _WIDTH.value,
        _STEM.value,
    )
    config = configuration.resolve(config)
    mean, std = (tuple(map(float, numbers)) for numbers in (_MEAN.value, _STD.value))
    config.transform.update(
        {"name": "image", "size": _SIZE.value, "channels": len(mean), "mean": mean, "std": std}
    )
    module = stored.encoder_of(config, trust=())
    encoder = load_torch(_INPUT.value, module, prefix=_PREFIX.value)
    workdir = pathlib.Path(_WORKDIR.value)
    if (workdir / "checkpoints").exists():
        raise ValueError(f"{workdir} holds a run already: give --workdir another folder")
    checkpoints = Checkpoints(workdir, keep=1)
    variables = jax.tree.map(np.asarray, encoder.variables)
    checkpoints.save(0, variables, {"step": np.int32(0)}, config.to_dict())
    checkpoints.close()
    print(f"{_ARCH.value} of {_INPUT.value} is in {workdir}")
    return 0


def start() -> None:
    """Runs the command."""
    cli.run(main)


if __name__ == "__main__":
    start()
