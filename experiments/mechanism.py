"""Why a penalty fails or works: what its derivative sees of the change made by alpha.

    python -m experiments.mechanism --workdir=runs/cpu/spirograph

For every finished run on Spirograph below the folder: first-order V (Eq. 12) beside V itself
(Eq. 11), with batch norm as in evaluation and as in training, and how much of the way from h(alpha)
to h(alpha') is one step out of 32. A representation that jumps between plateaus has a small
derivative, a large V and a large step. Results go to mechanism.json beside the records and to a
table.
"""

import json
import pathlib

import jax
from absl import flags

from experiments.jumps import DRAWS, measure, table
from invclr_jax import cli
from invclr_jax.checkpoint import load_encoder
from invclr_jax.evaluation.results import code_version
from invclr_jax.files import write_atomically
from invclr_jax.transforms.spirograph import SpirographTransform

_WORKDIR = flags.DEFINE_string("workdir", "runs/cpu/spirograph", "Folder of NAME/seedK runs.")
_OUT = flags.DEFINE_string("out", "experiments/results/cpu/mechanism.json", "File of the results.")

IMAGES = 128


def main() -> int:
    """Measures every finished run below the folder."""
    root, out = pathlib.Path(_WORKDIR.value), pathlib.Path(_OUT.value)
    known = json.loads(out.read_text())["runs"] if out.exists() else {}
    for folder in sorted(root.glob("*/seed*/checkpoints")):
        name = str(folder.parent.relative_to(root))
        encoder = load_encoder(folder.parent)
        if name in known or encoder.step < encoder.config.num_steps:
            continue
        if not isinstance(encoder.transform, SpirographTransform):
            raise ValueError(f"{folder} is a run on {encoder.config.data.name}: use Spirograph's")
        x = encoder.transform.x.sample(jax.random.key(encoder.config.seed), IMAGES)
        known[name] = measure(encoder, x, encoder.config.seed)
        record = {"code": code_version(), "images": IMAGES, "draws": DRAWS, "runs": known}
        write_atomically(out, json.dumps(record, indent=1, sort_keys=True) + "\n")
        print(name, {k: round(v, 5) for k, v in known[name].items()}, flush=True)
    print(table(known))
    return 0


if __name__ == "__main__":
    cli.run(main)
