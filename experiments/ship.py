"""Makes a run's encoder one that comes with the package, with its scores and a model card.

    python -m experiments.ship --workdir=runs/patches --name=cifar10-cpu --data_path=DIR
    invclr audit --workdir=cifar10-cpu --data_path=DIR
    python -m experiments.ship --name=cifar10-cpu --audit=audit/cifar10-cpu.json

Weights are rounded to bfloat16: they take half the space, and a network that computes in bfloat16
rounds them anyway. What is scored is the shipped encoder, on every row. Scores and the audit that
the record has of the same weights are kept. Without --workdir an audit joins what was shipped.
"""

import dataclasses
import json
import os
import pathlib
import shutil
from collections.abc import Mapping
from typing import Any, cast

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
from absl import flags

from experiments import all_rows, runner
from invclr_jax import cli
from invclr_jax.checkpoint import Encoder, load_encoder
from invclr_jax.checkpoint.loading import SHIPPED
from invclr_jax.checkpoint.store import FOLDER, Checkpoints
from invclr_jax.data import Dataset, load
from invclr_jax.evaluation import fingerprint, protocols
from invclr_jax.evaluation.context import Context
from invclr_jax.evaluation.results import code_version
from invclr_jax.evaluation.settings import Settings
from invclr_jax.files import write_atomically
from invclr_jax.transforms.image import ImageTransform

SAMPLES = (1, 8, 32)
"""The Ms of features averaged over crops."""
CROPS: dict[str, Any] = {"jitter_probability": 0.0, "grey_probability": 0.0}
"""Options of the run's transformation that leave colours alone: the gain of averaging is in crops
and flips (the paper's appendix)."""
LARGEST = max(SAMPLES)
COLUMNS = {
    "probe": "probe, %",
    "knn": "kNN, %",
    f"crops/M={LARGEST}/probe": f"probe, mean of {LARGEST} crops, %",
    f"crops/M={LARGEST}/knn": f"kNN, mean of {LARGEST} crops, %",
    "rotated": "rotated by 10 to 30°, %",
    "corrupted": "corrupted, %",
    "alpha": "alpha explained",
}
"""What tables show of a record's scores."""
AUDITED = {
    "ratio/{}": "V_cond/V_total",
    "canonical_correlation/{}": "canonical correlation",
    "retrieval/hits_at_1/{}": "found again",
    "alpha/linear/r2/{}": "R² of alpha",
}
"""What the card shows of each part of an audit, {}."""


def rounded(array: np.ndarray) -> np.ndarray:
    """The nearest bfloat16 numbers, in the type that they came in."""
    return np.asarray(jnp.asarray(array).astype(jnp.bfloat16).astype(array.dtype))


def write(encoder: Encoder, folder: pathlib.Path) -> None:
    """Writes an encoder as a workdir with one small checkpoint.

    Args:
      encoder: of a finished run.
      folder: the workdir; what is there is replaced.
    """
    shutil.rmtree(folder, ignore_errors=True)
    weights = jax.tree.map(lambda leaf: rounded(np.asarray(leaf)), encoder.variables)
    config = ml_collections.ConfigDict(encoder.config.to_dict())
    config.data.path = None  # says nothing on another machine
    checkpoints = Checkpoints(folder, keep=1)
    nothing = {"step": np.int32(encoder.step)}
    checkpoints.save(encoder.step, weights, nothing, config.to_dict())
    checkpoints.close()
    shutil.rmtree(folder / FOLDER / str(encoder.step) / "training")
    for note in folder.rglob("commit_success.txt"):
        note.write_text("complete\n")  # Orbax writes where it was made


def scores(encoder: Encoder, dataset: Dataset, data_path: str | None) -> dict[str, float]:
    """Everything that a card tells: see `all_rows`, and features averaged over crops.

    Args:
      encoder: of pictures.
      dataset: theirs.
      data_path: where it is.
    """
    found = all_rows.measure(encoder, data_path)
    found.pop("hits", None)
    transform = dataclasses.replace(cast(ImageTransform, encoder.transform), **CROPS)
    context = Context(
        dataclasses.replace(encoder, transform=transform),
        dataset,
        Settings(num_samples=SAMPLES),
        progress=True,
    )
    averaged = protocols.average(context)
    for m in SAMPLES:
        found[f"crops/M={m}/paper"] = averaged[f"probe/lbfgs/M={m}/accuracy"]
    found[f"crops/M={LARGEST}/probe"] = averaged[f"probe/selected/M={LARGEST}/accuracy"]
    found[f"crops/M={LARGEST}/knn"] = averaged[f"knn/k=200/M={LARGEST}/accuracy"]
    return found


def record(
    name: str,
    workdir: pathlib.Path,
    measured: Mapping[str, float],
    scored_by: str,
    audited: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What is kept of an encoder: scores, configuration, time, curve, code.

    Args:
      name: of the shipped encoder.
      workdir: the run's folder.
      measured: of `scores`.
      scored_by: version of the code that measured them.
      audited: what `invclr audit` wrote about it.
    """
    encoder = load_encoder(name)
    config = encoder.config
    return {
        "name": name,
        "step": encoder.step,
        "parameters": int(sum(np.size(leaf) for leaf in jax.tree.leaves(encoder.variables))),
        "config": config.to_dict(),
        "scores": dict(measured),
        "weights": fingerprint.of_encoder(encoder.encode_inputs),
        "code": {"trained": runner.note_version(workdir), "scored": scored_by},
        "hardware": f"{os.cpu_count()} CPU cores",
        "seconds": runner.training_seconds(workdir, config.batch_size),
        **runner.curves(workdir),
        "audit": audited,
    }


def card(kept: Mapping[str, Any]) -> str:
    """The model card, Markdown."""
    config, found = kept["config"], kept["scores"]
    model, views = config["model"], config["views"]
    seen = kept["step"] * config["batch_size"] * views["number"]
    rows = "\n".join(f"| {title} | {found[key]:.4g} |" for key, title in COLUMNS.items())
    return f"""# {kept["name"]}

An encoder of {config["data"]["name"]} that comes with invclr_jax: `load_encoder("{kept["name"]}")`.

| | |
|---|---|
| Encoder | {model["name"]}, width {model["width"]}, {kept["parameters"] / 1e6:.1f}M numbers |
| Data | training pictures of {config["data"]["name"]}, without labels |
| Method | {config["method"]}, {views["number"]} views per picture, penalty weight \
{config["penalty"]["weight"]:g} |
| Training | {kept["step"]} steps of {config["batch_size"]} pictures, {seen / 1e6:.1f}M views |
| Time | {kept["seconds"]["train"] / 3600:.1f} hours on {kept["hardware"]}, shared with other work |
| Weights | rounded to bfloat16 |
| Licence | Apache-2.0, as the package |

Scores on all test rows, linear probes fitted to all training rows with standardised features and an
l2 chosen on held-out rows. One seed: the binomial error is {found["error"]:.1f} %.

| | |
|---|---|
{rows}

“alpha explained” is the share of the colours' variance that a linear model reads from z.

{audit_card(kept["audit"]) if kept.get("audit") else ""}\
The encoder learnt from small pictures of ten classes: expect little on other kinds of pictures.
Generated by `experiments.ship` from its record, which holds the configuration and the curve.
"""


def audit_card(audited: Mapping[str, Any]) -> str:
    """The part of a card about an audit, Markdown.

    Args:
      audited: what `invclr audit` wrote.
    """
    metrics, about = audited["metrics"], audited["about"]

    def cell(metric: str) -> str:
        return f"{metrics[metric]:.2f}" if metric in metrics else ""

    lines = [["", *AUDITED.values()], ["---"] * (1 + len(AUDITED))]
    lines += [
        [part, *(cell(metric.format(part)) for metric in AUDITED)] for part in audited["parts"]
    ]
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    kept = metrics["shift/pixels=3/consistency"]
    return f"""## Audit

`invclr audit` on {about["images"]} test pictures. Small V_cond/V_total and a canonical correlation
near 1 mean invariance to that part alone. “found again” is the share of transformed pictures whose
nearest plain picture is their own, and R² what a linear model reads of the part from z. Moved by
three pixels, {100 * kept:.0f} % of the pictures keep the probe's prediction.

{rows}

"""


def table(folder: pathlib.Path) -> str:
    """The scores of all records in a folder, Markdown: a column for each encoder."""
    kept = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    lines = [["", *(f"`{one['name']}`" for one in kept)], ["---"] * (1 + len(kept))]
    lines += [
        [title, *(f"{one['scores'][key]:.4g}" for one in kept)] for key, title in COLUMNS.items()
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shipped(
    name: str, workdir: pathlib.Path, known: Mapping[str, Any], data_path: str | None
) -> dict[str, Any]:
    """Ships a run's encoder and scores it, unless the known record is of the same weights."""
    run = load_encoder(workdir)
    dataset = load(run.config.data.name, path=data_path)  # fails before anything is replaced
    write(run, SHIPPED / name)
    shipped = load_encoder(name)
    if known.get("weights") == fingerprint.of_encoder(shipped.encode_inputs):
        measured, scored_by, audited = known["scores"], known["code"]["scored"], known.get("audit")
    else:
        measured, scored_by, audited = scores(shipped, dataset, data_path), code_version(), None
    return record(name, workdir, measured, scored_by, audited)


def check(name: str, kept: Mapping[str, Any]) -> None:
    """Refuses a record that is not of the shipped encoder's weights."""
    if kept.get("weights") != fingerprint.of_encoder(load_encoder(name).encode_inputs):
        raise ValueError(f"there is no record of the weights of {name}: give its run, --workdir")


def main() -> int:
    """Ships, scores, writes the record and the card."""
    options = flags.FLAGS
    out = pathlib.Path(options.out) / f"{options.name}.json"
    kept = json.loads(out.read_text()) if out.exists() else {}
    if options.workdir:
        kept = _shipped(options.name, pathlib.Path(options.workdir), kept, options.data_path)
    else:
        check(options.name, kept)
    if options.audit:
        kept["audit"] = json.loads(pathlib.Path(options.audit).read_text())
    write_atomically(out, json.dumps(kept, indent=1, sort_keys=True) + "\n")
    write_atomically(SHIPPED / options.name / "README.md", card(kept))
    print(card(kept))
    return 0


if __name__ == "__main__":
    # Here, because other commands have flags of these names.
    flags.DEFINE_string("workdir", None, "The run's folder; none to add an audit alone.")
    flags.DEFINE_string("name", None, "Of the shipped encoder.", required=True)
    flags.DEFINE_string("audit", None, "What `invclr audit` wrote about the shipped encoder.")
    flags.DEFINE_string("data_path", None, "Where CIFAR is, see invclr_jax.data.load.")
    flags.DEFINE_string("out", "experiments/results/encoders", "Folder of the records.")
    cli.run(main)
