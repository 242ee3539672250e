"""Evaluates the newest (or any) checkpoint of a run.

    invclr evaluate --workdir=runs/spirograph --protocol=average,invariance,alpha

Protocols: untransformed, average (feature averaging over M), label_fraction, invariance
(conditional and total variance), alpha (predicting it from z), robustness (test-time shifts),
ensemble (against averaging), knn; or all of these; and corruption, by name only. All numbers go to
one JSON file in the workdir, with a plot beside it; a protocol that is in the file for the same
data, settings and weights is not computed again. One that fails does not stop the others; the exit
code is then 1. All devices share the work, and the processes of a job started as for `train`.
"""

import jax
from absl import flags

from invclr_jax import cli
from invclr_jax import config as configuration
from invclr_jax.checkpoint import load_encoder
from invclr_jax.evaluation.context import Context
from invclr_jax.evaluation.printing import finish, results_folder, show
from invclr_jax.evaluation.protocols import parse, run
from invclr_jax.evaluation.results import Results
from invclr_jax.evaluation.settings import Settings

_DEFAULT = Settings()
_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder.", required=True)
_STEP = flags.DEFINE_integer("step", None, "Which checkpoint; default: the newest.")
_PROTOCOL = flags.DEFINE_list("protocol", ["all"], "Protocols, comma separated, or all.")
_DATA_PATH = flags.DEFINE_string("data_path", None, "Where the data is, if it was moved.")
_SEED = flags.DEFINE_integer(
    "seed", _DEFAULT.seed, "Seed of transformations, splits and fractions."
)
_NUM_SAMPLES = flags.DEFINE_list(
    "num_samples", [str(m) for m in _DEFAULT.num_samples], "The Ms of feature averaging."
)
_L2 = flags.DEFINE_float("l2", None, "Weight decay of the probe; default: the paper's.")
_NUM_IMAGES = flags.DEFINE_integer(
    "num_images", _DEFAULT.num_images, "Test images whose conditional variance is measured."
)
_NUM_ALPHAS = flags.DEFINE_integer("num_alphas", _DEFAULT.num_alphas, "Alphas for each of them.")
_BATCH_SIZE = flags.DEFINE_integer(
    "batch_size", _DEFAULT.batch_size, "Inputs that each device encodes at a time."
)
_MEMORY = flags.DEFINE_float(
    "memory_gb", _DEFAULT.memory / 2**30, "GiB from which an array of features is kept in a file."
)
_TRUST = cli.define_trust()
_JOIN_JOB = cli.define_job(__name__)
_LIMIT = flags.DEFINE_integer(
    "limit", None, "Use a sample of at most this many training and test rows."
)


def main() -> int:
    """Restores, evaluates, prints tables, writes the JSON file and the plot."""
    _JOIN_JOB()
    names = parse(_PROTOCOL.value)
    settings = Settings(
        seed=_SEED.value,
        num_samples=cli.whole_numbers("num_samples", _NUM_SAMPLES.value),
        l2=_L2.value,
        num_images=_NUM_IMAGES.value,
        num_alphas=_NUM_ALPHAS.value,
        batch_size=_BATCH_SIZE.value,
        memory=round(_MEMORY.value * 2**30),
        limit=_LIMIT.value,
    )
    encoder = load_encoder(_WORKDIR.value, _STEP.value, trust=_TRUST.value)
    config = configuration.from_dict(encoder.config.to_dict())
    config.data.path = _DATA_PATH.value or config.data.path
    dataset = configuration.load_data(config, trust=_TRUST.value)
    context = Context(encoder, dataset, settings, progress=True)
    path = results_folder(_WORKDIR.value) / f"step{encoder.step}_seed{settings.seed}.json"
    results = Results(path, config=config.to_dict(), step=encoder.step, seed=settings.seed)
    outcomes = {}
    for name, outcome in run(context, names, results):
        outcomes[name] = outcome
        if jax.process_index() == 0:
            show(name, outcome, len(context.test))
    return finish(outcomes, path) if jax.process_index() == 0 else 0


def start() -> None:
    """Runs the command."""
    cli.run(main)


if __name__ == "__main__":
    start()
