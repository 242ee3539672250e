"""What tests of the protocols share."""

import dataclasses

import numpy as np

from invclr_jax.data.dataset import Split
from invclr_jax.evaluation import protocols
from invclr_jax.evaluation.results import Results
from invclr_jax.evaluation.settings import Settings

SETTINGS = Settings(
    num_samples=(1, 2, 4), fractions=(0.5, 1.0), num_images=10, num_alphas=6, batch_size=48
)


@dataclasses.dataclass(frozen=True)
class Plain:
    """An encoder of one's own: a function and a transform."""

    transform: object

    def encode_inputs(self, images):
        return images.mean((1, 2))


def by_class(split):
    """A split sorted by class, as folders of pictures are."""
    order = np.argsort(split.labels, kind="stable")
    return Split(split.images[order], split.labels[order])


def stored(context, path, names):
    """Outcomes of protocols, with a result file."""
    results = Results(path, config={"model": {"width": 4}}, step=4, seed=0)
    return dict(protocols.run(context, names, results))
