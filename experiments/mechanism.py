"""Why a penalty fails or works: what its derivative sees of the change that alpha makes.

    python -m experiments.mechanism --workdir=runs/cpu/spirograph

For every finished run on Spirograph below the folder: V by first order (Eq. 12) beside V itself
(Eq. 11), with batch norm as in evaluation and as in training, and how much of the way from h(alpha)
to h(alpha') is one step out of 32. A representation that jumps between plateaus has a small
derivative, a large V and a large step. Results go to mechanism.json beside the records and to a
table.
"""

import json
import pathlib

import jax
import numpy as np
from absl import flags

from experiments.jumps import DRAWS, measure
from invclr_jax import cli
from invclr_jax.checkpoint import load_encoder
from invclr_jax.evaluation.results import code_version
from invclr_jax.transforms.spirograph import SpirographTransform

_WORKDIR = flags.DEFINE_string("workdir", "runs/cpu/spirograph", "Folder of NAME/seedK runs.")
_OUT = flags.DEFINE_string(
    "out", "experiments/results/cpu/spirograph/mechanism.json", "File of the results."
)

IMAGES = 128
COLUMNS = {
    "eval/unit/first_order": "V, first order",
    "eval/unit/finite": "V",
    "train/unit/first_order": "V, first order, batch norm of training",
    "train/unit/finite": "V, batch norm of training",
    "eval/relative/first_order": "V/V_total, first order",
    "eval/relative/finite": "V/V_total",
    "largest_step": "largest of 32 steps",
}


def table(rows: dict[str, dict[str, float]]) -> str:
    """The results as Markdown, the mean over seeds of each run."""
    lines = ["| run | " + " | ".join(COLUMNS.values()) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name in sorted({name.rpartition("/")[0] for name in rows}):
        seeds = [row for key, row in rows.items() if key.rpartition("/")[0] == name]
        cells = (f"{np.mean([row[column] for row in seeds]):.3g}" for column in COLUMNS)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


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
        out.parent.mkdir(parents=True, exist_ok=True)
        record = {"code": code_version(), "images": IMAGES, "draws": DRAWS, "runs": known}
        out.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
        print(name, {k: round(v, 5) for k, v in known[name].items()}, flush=True)
    print(table(known))
    return 0


if __name__ == "__main__":
    cli.run(main)
