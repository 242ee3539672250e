"""Writes the features of your images.

    invclr extract --workdir=runs/c10 --input=images.npz --output=features.npz
    invclr extract --workdir=runs/c10 --input=folder/ --output=f.npz --num_samples=32

The input is an npz file whose arrays are images (uint8 or [0, 1] floats, [n, h, w, channels]), or
a folder of class folders of PNG or JPEG files. The output holds features [n, d] under the name of
each array, and labels as they are. With --num_samples=M features are averaged over M random
transformations, as `Encoder.represent` does; an encoder whose pictures are drawn from factors
(Spirograph) then takes factors [n, number]. 0 leaves images as they are.
"""

import pathlib

from absl import flags

from invclr_jax import cli
from invclr_jax.checkpoint import load_encoder
from invclr_jax.evaluation.extraction import check_input, extract, read_inputs, write_npz
from invclr_jax.transforms.base import takes_images

_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder.", required=True)
_STEP = flags.DEFINE_integer("step", None, "Which checkpoint; default: the newest.")
_INPUT = flags.DEFINE_string("input", None, "npz file or image folder.", required=True)
_OUTPUT = flags.DEFINE_string("output", None, "npz file to write.", required=True)
_NUM_SAMPLES = flags.DEFINE_integer("num_samples", 0, "M; 0 for no transformation.", lower_bound=0)
_SEED = flags.DEFINE_integer("seed", 0, "Of the transformations.", lower_bound=0)
_TRUST = cli.define_trust()
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 500, "Inputs encoded at a time.", lower_bound=1)


def main() -> int:
    """Reads, encodes and writes."""
    output, num_samples = pathlib.Path(_OUTPUT.value), _NUM_SAMPLES.value
    encoder = load_encoder(_WORKDIR.value, _STEP.value, trust=_TRUST.value)
    inputs = read_inputs(pathlib.Path(_INPUT.value), encoder.config.transform.size)
    factors = num_samples > 0 and not takes_images(encoder.transform)
    labels = {name: x for name, x in inputs.items() if x.ndim == 1}
    images = {name: x for name, x in inputs.items() if x.ndim != 1}
    for name, x in images.items():
        check_input(name, x, factors=factors)
    options = {"num_samples": num_samples, "seed": _SEED.value, "batch_size": _BATCH_SIZE.value}
    features = {name: extract(encoder, x, title=name, **options) for name, x in images.items()}
    write_npz(output, features | labels)
    for name, array in features.items():
        print(f"{name}: {array.shape[0]} features of length {array.shape[1]} in {output}")
    return 0


def start() -> None:
    """Runs the command."""
    cli.run(main)


if __name__ == "__main__":
    start()
