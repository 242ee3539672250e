"""Makes an encoder more invariant without training it again.

    invclr adapt --workdir=runs/c10 --output=adapted.program
    invclr adapt --workdir=runs/c10 --images=pictures.npz --num_views=8 --output=adapted.program

A small residual network is trained on features of several transformations of each picture, computed
once, by the transformation that the run was trained with. The output is a program for
`jax.export.deserialize(content).call(images)`: the encoder followed by its adapter.
"""

import pathlib

from absl import flags

from invclr_jax import cli, data
from invclr_jax import config as configuration
from invclr_jax.checkpoint import Encoder, load_encoder
from invclr_jax.checkpoint.exporting import portable, to_program
from invclr_jax.training.adapt import Adapted, adapt
from invclr_jax.training.adapter import AdapterSettings

_DEFAULT = AdapterSettings()
_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder.", required=True)
_OUTPUT = flags.DEFINE_string("output", None, "File to write.", required=True)
_IMAGES = flags.DEFINE_string("images", None, "npz file; the run's own data if not given.")
_DATA_PATH = flags.DEFINE_string("data_path", None, "Where the data is, if it was moved.")
_NUM_VIEWS = flags.DEFINE_integer("num_views", 4, "Transformations of each picture.")
_LIMIT = flags.DEFINE_integer("limit", None, "So many random pictures at most.", lower_bound=20)
_STEPS = flags.DEFINE_integer("steps", _DEFAULT.steps, "Of the adapter's training.")
_KEEP = flags.DEFINE_float("keep", _DEFAULT.keep, "Weight that keeps clean features in place.")
_SEED = flags.DEFINE_integer("seed", 0, "Of pictures, transformations and first weights.")
_TRUST = cli.define_trust()


def main() -> int:
    """Restores the encoder, adapts it and writes the program."""
    encoder = load_encoder(_WORKDIR.value, trust=_TRUST.value)
    if _IMAGES.value:
        dataset = data.load("arrays", path=_IMAGES.value)
    else:
        config = configuration.from_dict(encoder.config.to_dict())
        config.data.path = _DATA_PATH.value or config.data.path
        dataset = configuration.load_data(config, trust=_TRUST.value)
    settings = AdapterSettings(steps=_STEPS.value, keep=_KEEP.value, seed=_SEED.value)
    adapted = adapt(
        encoder,
        dataset,
        encoder.transform,
        num_views=_NUM_VIEWS.value,
        limit=_LIMIT.value,
        settings=settings,
    )
    shape = dataset.train.array.shape[1:]
    to_program(_portable(encoder, adapted, shape), pathlib.Path(_OUTPUT.value), shape=shape)
    print(f"the adapted encoder is in {_OUTPUT.value}")
    return 0


def _portable(encoder: Encoder, adapted: Encoder, shape: tuple[int, ...]) -> Encoder:
    """The adapter after an encoder that every platform can run."""
    head = adapted.module.function
    whole = Adapted(portable(encoder, shape), head.adapter, head.variables)  # type: ignore[arg-type]
    return Encoder.from_function(whole, adapted.transform)


def start() -> None:
    """Runs the command."""
    cli.run(main)


if __name__ == "__main__":
    start()
