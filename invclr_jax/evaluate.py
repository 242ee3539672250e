"""Evaluates the newest (or any) checkpoint of a run.

    python -m invclr_jax.evaluate --workdir=runs/spirograph --protocol=average,invariance,alpha

Protocols: untransformed, average (feature averaging over M), label_fraction, invariance
(conditional and total variance), alpha (predicting it from z), robustness (test-time shifts),
ensemble (against averaging), knn; or all. Results go to one JSON file in the workdir; a protocol
that is in it with the same settings is not computed again.
"""

import dataclasses
import pathlib

from absl import flags

from invclr_jax import cli
from invclr_jax.checkpoint import load_encoder
from invclr_jax.evaluation.context import Context, Settings
from invclr_jax.evaluation.protocols import evaluate, parse
from invclr_jax.evaluation.results import Results, table
from invclr_jax.training.loop import load_data

_DEFAULT = Settings()
_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder.", required=True)
_STEP = flags.DEFINE_integer("step", None, "Which checkpoint; the newest if not given.")
_PROTOCOL = flags.DEFINE_list("protocol", ["all"], "Protocols, comma separated, or all.")
_DATA_PATH = flags.DEFINE_string("data_path", None, "Where the data is, if it has moved.")
_SEED = flags.DEFINE_integer("seed", _DEFAULT.seed, "Of transformations, splits and fractions.")
_NUM_SAMPLES = flags.DEFINE_list(
    "num_samples", [str(m) for m in _DEFAULT.num_samples], "The Ms of feature averaging."
)
_L2 = flags.DEFINE_float("l2", None, "Weight decay of the probe; the paper's if not given.")
_NUM_IMAGES = flags.DEFINE_integer(
    "num_images", _DEFAULT.num_images, "Test images whose conditional variance is measured."
)
_NUM_ALPHAS = flags.DEFINE_integer("num_alphas", _DEFAULT.num_alphas, "Alphas for each of them.")
_BATCH_SIZE = flags.DEFINE_integer("batch_size", _DEFAULT.batch_size, "Inputs encoded at a time.")
_LIMIT = flags.DEFINE_integer("limit", None, "Use only so many training and test rows.")


def main() -> int:
    """Restores, evaluates, writes the JSON file and prints a table."""
    names = parse(_PROTOCOL.value)
    settings = Settings(
        seed=_SEED.value,
        num_samples=cli.whole_numbers("num_samples", _NUM_SAMPLES.value),
        l2=_L2.value,
        num_images=_NUM_IMAGES.value,
        num_alphas=_NUM_ALPHAS.value,
        batch_size=_BATCH_SIZE.value,
        limit=_LIMIT.value,
    )
    encoder = load_encoder(_WORKDIR.value, _STEP.value)
    config = encoder.config.copy_and_resolve_references()
    config.data.path = _DATA_PATH.value or config.data.path
    context = Context(encoder, load_data(config), settings)
    path = pathlib.Path(_WORKDIR.value) / "results" / f"step{encoder.step}_seed{settings.seed}.json"
    results = Results(path, config=encoder.config, step=encoder.step, seed=settings.seed)
    for name, outcome in evaluate(context, names, results, dataclasses.asdict(settings)):
        print(f"\n{name}")
        print(outcome if isinstance(outcome, str) else table(outcome), flush=True)
    print(f"\nresults are in {path}")
    return 0


if __name__ == "__main__":
    cli.run(main)
