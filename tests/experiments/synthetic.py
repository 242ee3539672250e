"""Records of runs that were never made, with every metric that a real one has."""

import json

import numpy as np

from experiments.datasets import DATASETS
from experiments.runner import PROTOCOLS, evaluation_options, record_path, settings_of
from experiments.runs import Run
from invclr_jax.transforms.image import STRENGTHS

TASKS = ("m", "b", "sigma", "f_r", "total")
NUISANCES = ("h", "f_g", "f_b", "b_r", "b_g", "b_b")
COLOUR = ("brightness", "contrast", "saturation", "hue")
SHIFTS = (
    *(f"h_shift={s:+g}" for s in (-0.5, -0.3, -0.1, 0.1, 0.3, 0.5)),
    *(f"h_widen={s:g}" for s in (0.1, 0.3, 0.5)),
    *(f"background_{kind}={s:g}" for kind in ("shift", "widen") for s in (0.1, 0.2, 0.3, 0.4)),
)


def metric_names(dataset, settings, k=200):
    """Every metric of a finished run, by the conventions of `invclr_jax.evaluation.protocols`."""
    regression = DATASETS[dataset].kind == "factors"
    variances = ("conditional_variance", "total_variance", "ratio", "as_published")
    more = ("effective_rank", "canonical_correlation", "mean_norm")
    names = {f"invariance/{v}" for v in (*variances, *more)}
    for component in ("mean", *(NUISANCES if regression else COLOUR)):
        names |= {f"alpha/{how}/mse/{component}" for how in ("ridge", "lbfgs")}
        names.add(f"alpha/reference/{component}")
    plain = "M=1" if regression else "untransformed"
    features = [f"M={m}" for m in settings.num_samples]
    features += [f"{plain}/fraction={f:g}" for f in settings.fractions] + ["robustness/no_shift"]
    shifts = SHIFTS if regression else [f"strength={s:g}" for s in STRENGTHS]
    features += [f"robustness/{s}/{how}" for s in shifts for how in ("kept", "refitted")]
    if regression:
        return names | {f"probe/ridge/{f}/mse/{task}" for f in features for task in TASKS}
    scores = ("accuracy", "loss", "iterations", "grad_norm")
    names |= {f"probe/lbfgs/{f}/{score}" for f in [*features, plain] for score in scores}
    sizes = [m for m in settings.num_samples if m <= settings.ensemble_samples]
    names |= {
        f"ensemble/{kind}/M={m}/{score}"
        for kind in ("averaging", "ensembling")
        for m in sizes
        for score in ("accuracy", "loss")
    }
    names |= {f"ensemble/ensembling/M={m}/fold" for m in sizes}
    largest = f"M={max(settings.num_samples)}"
    names |= {f"probe/selected/{f}/{s}" for f in (plain, largest) for s in (*scores, "l2")}
    assert "knn" in PROTOCOLS["pictures"]
    return names | {f"knn/k={k}/{f}/accuracy" for f in (plain, largest)}


def record(run, seed):
    """A made-up record of a run."""
    rng = np.random.default_rng([seed, *map(ord, str(run))])
    options = evaluation_options(run, seed)
    names = sorted(metric_names(run.dataset, settings_of(run, seed)))
    measured = [name for name in names if name.startswith(("invariance", "alpha"))]
    steps = list(range(100, 1001, 100))
    values = rng.uniform(0.1, 1, (len(steps), len(measured))).T.tolist()
    return {
        "scale": run.scale,
        "dataset": run.dataset,
        "name": run.name,
        "seed": seed,
        "config": run.config(seed).to_dict(),
        "evaluation": options,
        "code": {"trained": "0.1.0+abc", "evaluated": "0.1.0+abc"},
        "jax_version": "0",
        "hardware": "1 cpu, 2 cores",
        "seconds": {"train": 100.0, "step": rng.uniform(0.1, 0.2), "evaluate": 10.0},
        "metrics": dict(zip(names, rng.uniform(0.1, 1, len(names)).tolist(), strict=True)),
        "training": {"step": steps, "contrastive": rng.uniform(1, 2, len(steps)).tolist()},
        "trajectory": {"step": steps, **dict(zip(measured, values, strict=True))},
    }


def write_records(results, texts, scale="cpu", seeds=2):
    """Writes made-up records of `data set/name` runs where the runner would."""
    for text in texts:
        run = Run(scale, *text.split("/"))
        for seed in range(seeds):
            path = record_path(results, run, seed)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record(run, seed)))
