"""Writes the features of your images.

    invclr extract --workdir=runs/c10 --input=images.npz --output=features.npz
    invclr extract --workdir=runs/c10 --input=folder/ --output=f.npz --num_samples=32

The input is an npz file whose arrays are images (uint8 or [0, 1] floats, [n, h, w, channels]), or
a folder of class folders of PNG or JPEG files, or parquet files with a column of them. The output
holds features [n, d] under the name of each array, and labels as they are. With --num_samples=M
features are averaged over M random transformations, as `Encoder.represent` does; an encoder whose
pictures are drawn from factors (Spirograph) then takes factors [n, number]. 0 leaves images as
they are.

    invclr extract --engine=ray --workdir=runs/c10 --input=folder/ --output=shards/ --ray_workers=8

divides the work over the processes of a Ray cluster, or of this machine. The output is then a
folder of shards, with the same features; run again, the command makes those that are missing.
"""

import pathlib

from absl import flags

from invclr_jax import cli, ray_extract
from invclr_jax.checkpoint import load_encoder
from invclr_jax.evaluation.extraction import (
    check_input,
    divided,
    extract,
    read_inputs,
    write_npz,
)
from invclr_jax.transforms.base import takes_images

_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder.", required=True)
_STEP = flags.DEFINE_integer("step", None, "Which checkpoint; default: the newest.")
_INPUT = flags.DEFINE_string("input", None, "npz file or image folder.", required=True)
_OUTPUT = flags.DEFINE_string("output", None, "npz file, or folder for shards.", required=True)
_NUM_SAMPLES = flags.DEFINE_integer("num_samples", 0, "M; 0 for no transformation.", lower_bound=0)
_SEED = flags.DEFINE_integer("seed", 0, "Of the transformations.", lower_bound=0)
_TRUST = cli.define_trust()
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 500, "Inputs encoded at a time.", lower_bound=1)
_ENGINE = flags.DEFINE_enum("engine", "local", ["local", "ray"], "Who does the work.")
_RAY_WORKERS = flags.DEFINE_integer("ray_workers", 2, "Processes that encode.", lower_bound=1)
_RAY_GPUS = flags.DEFINE_float("ray_gpus", 0, "GPUs of each of them.", lower_bound=0)
_RAY_ADDRESS = flags.DEFINE_string("ray_address", None, "Of a Ray cluster; none for this machine.")
_SHARD_ROWS = flags.DEFINE_integer("shard_rows", 10_000, "Rows of a shard.", lower_bound=1)
_SHARD_FORMAT = flags.DEFINE_string("shard_format", "npz", "npz or parquet.")


def main() -> int:
    """Reads, encodes and writes."""
    return _by_ray() if _ENGINE.value == "ray" else _here()


def _by_ray() -> int:
    job = ray_extract.Job(
        workdir=str(pathlib.Path(_WORKDIR.value).absolute()),
        input=str(pathlib.Path(_INPUT.value).absolute()),
        output=str(pathlib.Path(_OUTPUT.value).absolute()),
        step=_STEP.value,
        trust=tuple(_TRUST.value),
        num_samples=_NUM_SAMPLES.value,
        seed=_SEED.value,
        batch_size=_BATCH_SIZE.value,
        shard_rows=_SHARD_ROWS.value,
        format=_SHARD_FORMAT.value,
    )
    gpus, address = _RAY_GPUS.value, _RAY_ADDRESS.value
    shards = ray_extract.run(job, workers=_RAY_WORKERS.value, gpus=gpus, address=address)
    rows = sum(shard.stop - shard.start for shard in shards)
    print(f"{rows} features in {len(shards)} shards in {job.output}")
    return 0


def _here() -> int:
    output, num_samples = pathlib.Path(_OUTPUT.value), _NUM_SAMPLES.value
    encoder = load_encoder(_WORKDIR.value, _STEP.value, trust=_TRUST.value)
    inputs = read_inputs(pathlib.Path(_INPUT.value), encoder.config.transform.size)
    factors = num_samples > 0 and not takes_images(encoder.transform)
    images, labels = divided(inputs)
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
