"""The demo: three small encoders of Spirograph, two of them penalised, compared on one page.

    python -m experiments.demo --out=demo

One seed and a short schedule: it shows how things are done, not which method is better.
"""

import json
import pathlib
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from experiments.report.page import Better, Page, comparison
from experiments.runner import Stopped
from invclr_jax import cli
from invclr_jax import config as configuration
from invclr_jax.api import train
from invclr_jax.checkpoint import load_encoder
from invclr_jax.evaluation import protocols
from invclr_jax.evaluation.context import Context
from invclr_jax.evaluation.results import Results
from invclr_jax.evaluation.settings import Settings
from invclr_jax.transforms.spirograph import SpirographTransform

RUNS: dict[str, dict[str, Any]] = {
    "no penalty": {"weight": 0.0},
    "the paper's": {"weight": 0.01, "estimator": "forward", "feature": "unit"},
    "canonical": {"weight": 1.0, "estimator": "finite", "feature": "canonical", "ridge": 0.01},
}
"""Keys of `config.penalty` of each encoder."""

SETTINGS = Settings(num_samples=(1, 2, 5, 10, 20), num_images=200, num_alphas=30, limit=4000)
METRICS: dict[str, tuple[str, Better]] = {
    "invariance/conditional_variance": ("variance within a picture, of z/|z| (Eq. 6)", "low"),
    "invariance/total_variance": ("variance over all pictures", None),
    "invariance/ratio": ("their ratio: 0 is invariant", "low"),
    "invariance/canonical_correlation": ("canonical correlation: 1 is invariant", "high"),
    "alpha/ridge/mse/mean": ("error of predicting alpha from z", "high"),
    "alpha/reference/mean": ("… of a constant: nothing can be read", None),
    "probe/ridge/M=1/mse/m": ("error of m, one view", "low"),
    "probe/ridge/M=20/mse/m": ("error of m, mean of 20 views", "low"),
    "probe/ridge/M=1/mse/b": ("error of b, one view", "low"),
    "probe/ridge/M=20/mse/b": ("error of b, mean of 20 views", "low"),
    "probe/ridge/M=1/mse/total": ("error of all four factors, one view", "low"),
    "probe/ridge/M=20/mse/total": ("error of all four factors, mean of 20 views", "low"),
}
"""Metric -> what to call it, and which extreme is better."""

NEXT = """\
python -m experiments.demo --out=demo/whole --steps=2000     # the whole schedule
invclr evaluate --workdir=demo/canonical --protocol=all      # every protocol of the paper
invclr audit --workdir=demo/no_penalty,demo/canonical        # side by side, on one page
invclr train --config=cifar10_cpu --config.data.path=DIR --workdir=runs/c10"""


def train_and_evaluate(
    out: pathlib.Path, name: str, penalty: dict[str, Any], steps: int
) -> dict[str, float]:
    """Trains (or resumes) one encoder and measures it."""
    config = configuration.load("spirograph_cpu")
    config.num_steps = steps
    config.penalty.update(penalty)
    config.log.every_steps = max(steps // 20, 1)
    workdir = _workdir(out, name)
    print(f"\ntraining with {name} in {workdir}", flush=True)
    result = train(config, workdir)
    if result.signal is not None:
        raise Stopped(result.signal)
    encoder = load_encoder(workdir)
    context = Context(encoder, configuration.load_data(encoder.config), SETTINGS)
    description = {"config": encoder.config.to_dict(), "step": encoder.step, "seed": SETTINGS.seed}
    results = Results(workdir / "results.json", **description)
    metrics: dict[str, float] = {}
    for protocol, outcome in protocols.run(context, ["invariance", "alpha", "average"], results):
        if outcome.error is not None:
            raise outcome.error
        print(f"{outcome.status}: {protocol}", flush=True)
        metrics |= outcome.metrics
    return metrics


def _workdir(out: pathlib.Path, name: str) -> pathlib.Path:
    return out / name.replace(" ", "_").replace("'", "")


def learning_curves(out: pathlib.Path) -> list[Figure]:
    """Contrastive loss and penalty over the steps of each run, one figure each."""
    figures = [Figure(figsize=(5, 3.2), layout="constrained") for _ in range(2)]
    axes = [figure.subplots() for figure in figures]
    ends: dict[str, float] = {}
    for name in RUNS:
        path = _workdir(out, name) / "metrics.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        steps = [line["step"] for line in lines]
        ends[name] = lines[-1]["contrastive"]
        for axis, term in zip(axes, ("contrastive", "penalty"), strict=True):
            axis.plot(steps, [line.get(term, 0.0) for line in lines], label=name)
            axis.set_xlabel("step")
    lowest = min(ends, key=ends.__getitem__)
    axes[0].set_title(f"Contrastive loss: “{lowest}” ends lowest, {ends[lowest]:.2f}", fontsize=10)
    axes[1].set_title("Penalty, before its weight: scales differ", fontsize=10)
    axes[1].set_yscale("symlog", linthresh=1e-2)
    axes[0].legend()
    return figures


def averaging_curve(found: dict[str, dict[str, float]]):
    """Error of the four factors against M."""
    figure, axis = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
    best: dict[int, str] = {}
    for m in SETTINGS.num_samples:
        errors = {name: metrics[f"probe/ridge/M={m}/mse/total"] for name, metrics in found.items()}
        best[m] = min(errors, key=errors.__getitem__)
    for name, metrics in found.items():
        curve = [metrics[f"probe/ridge/M={m}/mse/total"] for m in SETTINGS.num_samples]
        axis.plot(SETTINGS.num_samples, curve, marker="o", label=name)
    first, last = min(best), max(best)
    title = f"Lowest with one view: “{best[first]}”; with {last}: “{best[last]}”"
    axis.set_title(title, fontsize=10)
    axis.set(xlabel="M, views averaged", ylabel="← better   test error of the factors")
    axis.set(xscale="log", yscale="log")
    axis.legend()
    return figure


def samples():
    """Two rows of pictures: the same factors of interest, different nuisances."""
    transform = SpirographTransform(size=64)
    x_key, alpha_key = jax.random.split(jax.random.key(1))
    x = jnp.repeat(transform.x.sample(x_key, 2), 8, axis=0)
    images = np.asarray(transform.apply(x, *transform.sample(alpha_key, 16)))
    figure, axes = plt.subplots(2, 8, figsize=(9, 2.4))
    for axis, image in zip(axes.ravel(), images, strict=True):
        axis.imshow(image)
        axis.axis("off")
    return figure


def report(
    out: pathlib.Path, found: dict[str, dict[str, float]], steps: int, minutes: float
) -> Page:
    """The page.

    Args:
      out: folder of the runs.
      found: name of a run -> its metrics.
      steps: of each run.
      minutes: that it took.
    """
    page = Page("Three encoders of Spirograph: what does each ignore?")
    page.text(
        "Each picture is drawn from four factors of interest and six nuisances. An encoder should "
        "find the former and ignore the latter. One was trained with plain contrastive learning, "
        "one with the paper's penalty on z/|z|, and one with the missing canonical correlation "
        f"between two views, {steps} steps each: enough to see every part work, not to "
        "judge the methods (one seed, a tiny encoder, a short schedule)."
    )
    page.heading("The pictures")
    page.text("Each row shows the same factors of interest under eight draws of the nuisances.")
    page.figure(samples(), "Spirograph samples")
    page.heading("Training")
    page.text(
        "The contrastive loss asks that two views of a picture be told apart from all others. The "
        "penalties ask, each in its own way, that z does not change with the nuisances."
    )
    page.panels(learning_curves(out), "contrastive loss and penalty over the steps")
    page.heading("The representations compared")
    page.text("Arrows show which way is better; the best of a row is bold and coloured.")
    comparison(page, METRICS, found)
    page.heading("Feature averaging")
    page.text(
        "A linear model reads the four factors from the mean of M views. More views cost more and "
        "mostly help; a more invariant encoder has less to gain."
    )
    page.figure(averaging_curve(found), "test error against M")
    page.heading("What to do next")
    page.text(
        "Train for the whole schedule, look closer at what you have, or move on to photographs. "
        "README.md leads to the tutorials."
    )
    page.commands(NEXT)
    page.text(f"Made in {minutes:.1f} minutes.", "note")
    return page


def main() -> int:
    """Trains all, evaluates all, writes the page."""
    out, start = pathlib.Path(flags.FLAGS.out), time.perf_counter()
    try:
        found = {
            name: train_and_evaluate(out, name, penalty, flags.FLAGS.steps)
            for name, penalty in RUNS.items()
        }
    except Stopped as stopped:
        print(f"{stopped}: start the demo again to resume")
        return 128 + stopped.signal
    minutes = (time.perf_counter() - start) / 60
    report(out, found, flags.FLAGS.steps, minutes).write(out / "report.html")
    print(f"\nopen {out / 'report.html'} in a browser; it ends with what to do next")
    return 0


if __name__ == "__main__":
    # Defined here because other commands have flags of these names.
    flags.DEFINE_string("out", "demo", "Folder for the runs and report.html.")
    flags.DEFINE_integer("steps", 500, "Training steps of each encoder.", lower_bound=1)
    cli.run(main)
