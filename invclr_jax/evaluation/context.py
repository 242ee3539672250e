"""What every protocol works on: an encoder, its data and settings; features are computed once."""

import dataclasses
import functools

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from invclr_jax.checkpoint import Encoder
from invclr_jax.data import Dataset, Split
from invclr_jax.evaluation import features
from invclr_jax.transforms.base import Transform, alpha_names

Metrics = dict[str, float]

# Purposes of the evaluation's random keys.
AVERAGE, CONDITIONAL, ALPHA, SHIFT = range(4)


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to evaluate; the defaults are the paper's.

    Attributes:
      seed: of transformations, splits and label fractions.
      num_samples: the Ms of feature averaging, ascending.
      fractions: label fractions of the semi-supervised protocol.
      l2: weight decay of the probe; None for the paper's (1e-5 for classes, 1e-8 for numbers).
      num_images: test images of the invariance protocol.
      num_alphas: alphas for each of them.
      ensemble_samples: largest M of the ensemble protocol, which keeps all M·n features.
      batch_size: inputs that the encoder takes at a time.
      limit: use at most so many training and test rows; None for all.
    """

    seed: int = 0
    num_samples: tuple[int, ...] = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    fractions: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
    l2: float | None = None
    num_images: int = 1000
    num_alphas: int = 100
    ensemble_samples: int = 20
    batch_size: int = 500
    limit: int | None = None

    def __post_init__(self):
        if not self.num_samples or min(self.num_samples) < 1:
            raise ValueError(f"num_samples is {self.num_samples}: every M must be at least 1")
        if not self.fractions or not all(0 < f <= 1 for f in self.fractions):
            raise ValueError(f"fractions are {self.fractions}: use numbers above 0, at most 1")
        if self.l2 is not None and not 0 <= self.l2 < float("inf"):
            raise ValueError(f"l2 is {self.l2}: use a finite number of at least 0")
        least = {"seed": 0, "num_images": 2, "num_alphas": 2, "batch_size": 1}
        for name, smallest in least.items():
            if getattr(self, name) < smallest:
                raise ValueError(f"{name} is {getattr(self, name)}: use at least {smallest}")
        if self.limit is not None and self.limit < 2:
            raise ValueError(f"limit is {self.limit}: use at least 2, or leave it out")


class Context:
    """An encoder with its data; each kind of feature is computed once.

    Args:
      encoder: a restored encoder.
      dataset: what to evaluate it on; needs a test split.
      settings: how.
    """

    def __init__(self, encoder: Encoder, dataset: Dataset, settings: Settings):
        if dataset.test is None:
            raise ValueError(
                f"the data set {dataset.name!r} has no test split: evaluation needs one"
            )
        self.encoder, self.dataset, self.settings = encoder, dataset, settings
        self.transform: Transform = encoder.transform
        self.train = _head(dataset.train, settings.limit)
        self.test = _head(dataset.test, settings.limit)

    @property
    def is_regression(self) -> bool:
        """Whether labels are numbers to regress (Spirograph) rather than classes."""
        return self.train.labels is not None and self.train.labels.ndim == 2

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the regression targets."""
        return self.dataset.label_names or tuple(map(str, range(labels_of(self.train).shape[1])))

    @property
    def num_classes(self) -> int:
        """Number of classes; raises where there are none."""
        if self.dataset.num_classes is None:
            labels_of(self.train)
            raise ValueError("the labels of this data are numbers, not classes")
        return self.dataset.num_classes

    @property
    def l2(self) -> float:
        """Weight decay of the probe."""
        if self.settings.l2 is not None:
            return self.settings.l2
        return 1e-8 if self.is_regression else 1e-5

    def key(self, purpose: int) -> PRNGKeyArray:
        """The key for one purpose."""
        return jax.random.fold_in(jax.random.key(self.settings.seed), purpose)

    @functools.cached_property
    def plain(self) -> tuple[np.ndarray, np.ndarray]:
        """Features of untransformed training and test inputs."""
        return self._both(
            lambda x, _: features.plain_features(
                self.encoder.encode_inputs,
                self.transform,
                x,
                batch_size=self.settings.batch_size,
            )
        )

    @functools.cached_property
    def averages(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """M -> averaged features of training and test inputs, from one pass of the largest M."""
        return self.averaged(self.transform, self.settings.num_samples, AVERAGE)

    def averaged(
        self, transform: Transform, num_samples: tuple[int, ...], purpose: int
    ) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """M -> averaged features of training and test inputs under any transformation."""

        def curve(x, key):
            return features.average_features_curve(
                self.encoder.encode_inputs,
                transform,
                x,
                key,
                num_samples,
                batch_size=self.settings.batch_size,
            )

        train_key, test_key = jax.random.split(self.key(purpose))
        train, test = curve(self.train.images, train_key), curve(self.test.images, test_key)
        return {m: (np.asarray(train[m]), np.asarray(test[m])) for m in num_samples}

    @functools.cached_property
    def single(self) -> tuple[np.ndarray, np.ndarray]:
        """Features of one random transformation of each training and test input."""
        if 1 in self.settings.num_samples and "averages" in self.__dict__:
            return self.averages[1]
        return self.averaged(self.transform, (1,), AVERAGE)[1]

    def drawn_from(self, other: Transform, purpose: int) -> tuple[np.ndarray, ...]:
        """Features under one draw of another transform's alpha and beta, applied by our own.

        The other differs in its distribution only, so nothing is compiled anew.
        """
        keys = jax.random.split(self.key(purpose))
        found = []
        for split, key in zip((self.train, self.test), keys, strict=True):
            alpha, beta = other.sample(key, len(split))
            z = features.features_at(
                self.encoder.encode_inputs,
                self.transform,
                split.images,
                alpha,
                beta,
                batch_size=self.settings.batch_size,
            )
            found.append(np.asarray(z))
        return tuple(found)

    @property
    def standard(self) -> tuple[str, tuple[np.ndarray, np.ndarray]]:
        """The usual features and their name: plain ones, or M=1 where nothing is plain."""
        if self.always_transformed:
            return "M=1", self.single
        return "untransformed", self.plain

    @property
    def always_transformed(self) -> bool:
        """Whether the data has no untransformed version."""
        try:
            self.transform.untransformed(self.test.images[:1])
        except ValueError:
            return True
        return False

    @property
    def alpha_names(self) -> tuple[str, ...]:
        """Names of alpha's components."""
        return alpha_names(self.transform)

    def with_alpha(self, purpose: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Features of one random transformation and its alpha, of training and test inputs."""
        keys = jax.random.split(self.key(purpose))
        pairs = zip((self.train, self.test), keys, strict=True)
        found = [self._transformed(split, key, 1) for split, key in pairs]
        return tuple((z[:, 0], alpha[:, 0]) for z, alpha in found)

    def samples(self, num_samples: int) -> tuple[np.ndarray, ...]:
        """The features `[n, M, d]` that `averages` averages, of training and test inputs."""
        keys = jax.random.split(self.key(AVERAGE))
        pairs = zip((self.train, self.test), keys, strict=True)
        return tuple(self._transformed(split, key, num_samples)[0] for split, key in pairs)

    def _transformed(self, split: Split, key: PRNGKeyArray, num_samples: int):
        z, alpha = features.transformed_features(
            self.encoder.encode_inputs,
            self.transform,
            split.images,
            key,
            num_samples,
            batch_size=self.settings.batch_size,
        )
        return np.asarray(z), np.asarray(alpha)

    def _both(self, compute) -> tuple[np.ndarray, np.ndarray]:
        return (
            np.asarray(compute(self.train.images, None)),
            np.asarray(compute(self.test.images, None)),
        )


def labels_of(split: Split) -> np.ndarray:
    """The labels, or a sentence if there are none."""
    if split.labels is None:
        raise ValueError(
            "this protocol needs labels and the data set has none: add train_labels and "
            "test_labels to the npz file, or ask for the protocols invariance and alpha only"
        )
    return split.labels


def _head(split: Split, limit: int | None) -> Split:
    labels = None if split.labels is None else split.labels[:limit]
    return Split(split.images[:limit], labels)
