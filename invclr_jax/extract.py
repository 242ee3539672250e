"""Writes the features of your images.

    python -m invclr_jax.extract --workdir=runs/c10 --input=images.npz --output=features.npz
    python -m invclr_jax.extract --workdir=runs/c10 --input=folder/ --output=f.npz --num_samples=32

The input is an npz file whose arrays are images (uint8 or [0, 1] floats, [n, h, w, 3]; for an
encoder of Spirograph also factors [n, 4] with --num_samples), or a folder of class folders of PNG
or JPEG files. The output holds features [n, d] under the name of each array, and labels as they
are. With --num_samples=M features are averaged over M random transformations; 0 leaves images as
they are.
"""

import os
import pathlib
import sys

import jax
import numpy as np
import tqdm
from absl import flags

from invclr_jax import cli
from invclr_jax.checkpoint import Encoder, load_encoder
from invclr_jax.data.arrays import read_npz
from invclr_jax.data.folder import load_folder

_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder.", required=True)
_STEP = flags.DEFINE_integer("step", None, "Which checkpoint; the newest if not given.")
_INPUT = flags.DEFINE_string("input", None, "npz file or image folder.", required=True)
_OUTPUT = flags.DEFINE_string("output", None, "npz file to write.", required=True)
_NUM_SAMPLES = flags.DEFINE_integer("num_samples", 0, "M; 0 for no transformation.", lower_bound=0)
_SEED = flags.DEFINE_integer("seed", 0, "Of the transformations.", lower_bound=0)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 500, "Inputs encoded at a time.", lower_bound=1)


def extract(
    encoder: Encoder, x: np.ndarray, *, num_samples: int, seed: int = 0, batch_size: int = 500
) -> np.ndarray:
    """Features `[n, d]` of images (or factors), with a progress bar on a terminal."""
    key, rows = jax.random.key(seed), []
    starts = range(0, len(x), batch_size)
    for start in tqdm.tqdm(starts, unit="batch", disable=not sys.stderr.isatty()):
        batch = x[start : start + batch_size]
        if num_samples:
            batch_key = jax.random.fold_in(key, start)
            rows.append(encoder.represent(batch, batch_key, num_samples, batch_size=batch_size))
        else:
            rows.append(encoder.encode(batch))
    return np.concatenate([np.asarray(part) for part in rows])


def read_inputs(path: pathlib.Path, size: int) -> dict[str, np.ndarray]:
    """Arrays by name from an npz file or an image folder, whose pictures are made `size` wide."""
    if not path.exists():
        raise FileNotFoundError(f"{path} (--input) does not exist")
    if not path.is_dir():
        return read_npz(path)
    dataset = load_folder(path, size=size)
    arrays: dict[str, np.ndarray] = {}
    for name, split in (("train", dataset.train), ("test", dataset.test)):
        if split is not None:
            arrays[f"{name}_images"] = split.images
            if split.labels is not None:
                arrays[f"{name}_labels"] = split.labels
    return arrays


def check_input(name: str, x: np.ndarray, *, factors: bool) -> None:
    """Refuses what cannot be encoded.

    Args:
      name: of the array.
      x: the array.
      factors: whether rows of four numbers are expected instead of images.
    """
    if factors and x.ndim == 2 and x.shape[1] == 4:
        return
    if x.ndim != 4 or x.shape[-1] != 3 or len(x) == 0:
        allowed = "factors [n, 4]" if factors else "images [n, h, w, 3]"
        raise ValueError(f"array {name!r} has shape {x.shape}: {allowed} are due")
    if x.dtype != np.uint8 and not (x.dtype.kind == "f" and x.min() >= 0 and x.max() <= 1):
        raise ValueError(f"array {name!r} is {x.dtype}: use uint8, or floats in [0, 1]")


def main() -> int:
    """Reads, encodes, writes to a temporary name and renames."""
    output = pathlib.Path(_OUTPUT.value)
    encoder = load_encoder(_WORKDIR.value, _STEP.value)
    inputs = read_inputs(pathlib.Path(_INPUT.value), encoder.config.transform.size)
    factors = encoder.config.data.name == "spirograph" and _NUM_SAMPLES.value > 0
    labels = {name: x for name, x in inputs.items() if x.ndim == 1}
    images = {name: x for name, x in inputs.items() if x.ndim != 1}
    for name, x in images.items():
        check_input(name, x, factors=factors)
    features = {
        name: extract(
            encoder,
            x,
            num_samples=_NUM_SAMPLES.value,
            seed=_SEED.value,
            batch_size=_BATCH_SIZE.value,
        )
        for name, x in images.items()
    }
    temporary = output.with_name(output.name + ".tmp.npz")
    output.parent.mkdir(parents=True, exist_ok=True)
    np.savez(temporary, allow_pickle=False, **features, **labels)
    os.replace(temporary, output)
    for name, array in features.items():
        print(f"{name}: {array.shape[0]} features of length {array.shape[1]} in {output}")
    return 0


if __name__ == "__main__":
    cli.run(main)
