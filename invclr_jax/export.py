"""Writes an encoder for use elsewhere.

    invclr export --workdir=runs/c10 --output=encoder.safetensors
    invclr export --workdir=runs/c10 --output=encoder.program --platforms=cpu,cuda,tpu

`.safetensors` holds a ResNet's weights by torchvision's names. `.program` holds weights and
arithmetic for `jax.export.deserialize(content).call(images)`, which needs JAX alone. `.onnx` is the
same for ONNX Runtime; it needs the extra `onnx` and jax2onnx.
"""

import pathlib

from absl import flags

from invclr_jax import cli
from invclr_jax.checkpoint import load_encoder
from invclr_jax.checkpoint.exporting import PLATFORMS, to_program, to_safetensors
from invclr_jax.checkpoint.onnx_export import to_onnx

_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder.", required=True)
_STEP = flags.DEFINE_integer("step", None, "Which checkpoint; default: the newest.")
_OUTPUT = flags.DEFINE_string(
    "output", None, ".safetensors, .program or .onnx file.", required=True
)
_PLATFORMS = flags.DEFINE_list("platforms", list(PLATFORMS), "Where the program is to run.")
_TRUST = cli.define_trust()


def main() -> int:
    """Restores the encoder and writes it."""
    output = pathlib.Path(_OUTPUT.value)
    if output.suffix not in (".safetensors", ".program", ".onnx"):
        raise ValueError(
            f"--output is {output}: use a name that ends in .safetensors, .program or .onnx"
        )
    encoder = load_encoder(_WORKDIR.value, _STEP.value, trust=_TRUST.value)
    if output.suffix == ".safetensors":
        to_safetensors(encoder, output)
    else:
        options = encoder.config.transform
        shape = (options.size, options.size, options.channels)
        if output.suffix == ".onnx":
            to_onnx(encoder, output, shape=shape)
        else:
            to_program(encoder, output, shape=shape, platforms=_PLATFORMS.value)
    print(f"the encoder of step {encoder.step} is in {output}")
    return 0


def start() -> None:
    """Runs the command."""
    cli.run(main)


if __name__ == "__main__":
    start()
