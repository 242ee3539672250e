"""What every protocol works on: an encoder, its data and settings; features are computed once."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from invclr_jax.data import Dataset, Pictures, Split, sample
from invclr_jax.evaluation import ensemble, features, fingerprint
from invclr_jax.evaluation.probes import Classifier
from invclr_jax.evaluation.progress import bar
from invclr_jax.evaluation.settings import Settings
from invclr_jax.transforms.base import NoPlainVersion, Transform, alpha_names

Metrics = dict[str, float]
Pair = tuple[np.ndarray, np.ndarray]
"""One thing for the training rows and one for the test rows."""

DECIDE_NOTHING = ("batch_size", "memory")
"""Settings that do not change any metric."""

# Purposes of the evaluation's random keys.
AVERAGE, CONDITIONAL, ALPHA, SHIFT, CORRUPTION = range(5)


@runtime_checkable
class Encoder(Protocol):
    """Any encoder: what `load_encoder` returns, or an object of your own."""

    @property
    def transform(self) -> Transform:
        """What changes its inputs."""
        ...

    @property
    def encode_inputs(self) -> Callable[[Any], Any]:
        """Network inputs, as `transform.apply` gives them, -> z `[n, d]`."""
        ...


class Context:
    """An encoder with its data; each kind of feature is computed once.

    Args:
      encoder: what to evaluate.
      dataset: what to evaluate it on; needs a test split.
      settings: how.
      progress: show a progress bar for every pass over the data, on a terminal.
    """

    def __init__(
        self, encoder: Encoder, dataset: Dataset, settings: Settings, *, progress: bool = False
    ):
        if dataset.test is None:
            raise ValueError(
                f"the data set {dataset.name!r} has no test split: evaluation needs one"
            )
        self.encoder, self.dataset, self.settings = encoder, dataset, settings
        self.transform: Transform = encoder.transform
        self.train = sample(dataset.train, settings.limit, seed=settings.seed)
        self.test = sample(dataset.test, settings.limit, seed=settings.seed)
        self._progress = progress

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
        """Number of classes; raises if there are none."""
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

    @functools.cached_property
    def fingerprint(self) -> dict[str, Any] | None:
        """Everything the metrics depend on; None if the encoder does not expose its weights."""
        weights = fingerprint.of_encoder(self.encoder.encode_inputs)
        if weights is None:
            return None
        settings = dataclasses.asdict(self.settings)
        for name in DECIDE_NOTHING:
            del settings[name]
        return {
            "settings": settings,
            "data": fingerprint.of_data(self.dataset, self.train, self.test),
            "encoder": weights,
            "transform": repr(self.transform),
        }

    def key(self, purpose: int) -> PRNGKeyArray:
        """The key for one purpose."""
        return jax.random.fold_in(jax.random.key(self.settings.seed), purpose)

    # Features of training and test rows ------------------------------------------------------

    @functools.cached_property
    def plain(self) -> Pair:
        """Features of untransformed inputs."""
        return self._both("untransformed", None, features.plain_features)

    @functools.cached_property
    def averages(self) -> dict[int, Pair]:
        """M -> averaged features, from one pass with the largest M."""
        return self.averaged(self.transform, self.settings.num_samples, AVERAGE)

    def averages_at(self, nums: Sequence[int]) -> dict[int, Pair]:
        """Averaged features at some Ms; those of `averages` if it has them all."""
        if set(nums) <= set(self.settings.num_samples):
            return self.averages
        return self.averaged(self.transform, tuple(nums), AVERAGE)

    def averaged(
        self, transform: Transform, num_samples: tuple[int, ...], purpose: int
    ) -> dict[int, Pair]:
        """M -> averaged features under any transformation."""

        def curve(encode, _, x, key, **options):
            return features.average_features_curve(
                encode, transform, x, key, num_samples, **options
            )

        train, test = self._both(f"average of {max(num_samples)}", purpose, curve)
        return {m: (train[m], test[m]) for m in num_samples}

    @functools.cached_property
    def single(self) -> Pair:
        """Features of one random transformation of each input."""
        if 1 in self.settings.num_samples and "averages" in self.__dict__:
            return self.averages[1]
        return self.averaged(self.transform, (1,), AVERAGE)[1]

    def drawn_from(self, other: Transform, purpose: int) -> Pair:
        """Features under one draw of another transform's alpha and beta, applied by our own.

        The other differs only in its distribution, so nothing is recompiled.
        """

        def given(encode, transform, x, key, **options):
            return features.features_at(encode, transform, x, *other.sample(key, len(x)), **options)

        return self._both("shifted", purpose, given)

    def with_alpha(self, purpose: int) -> tuple[Pair, Pair]:
        """Features of one random transformation of each input, and its alpha."""
        each = functools.partial(features.transformed_features, num_samples=1)
        train, test = self._both("one transformation", purpose, each)
        return tuple((z[:, 0], alpha[:, 0]) for z, alpha in (train, test))  # type: ignore[return-value]

    def samples(self, num_samples: int) -> np.ndarray:
        """The features `[n, M, d]` of training rows that `averages` averages."""
        key = jax.random.split(self.key(AVERAGE))[0]
        each = functools.partial(features.transformed_features, num_samples=num_samples)
        title = f"{num_samples} transformations, training rows"
        return self.pass_over(title, self.train.images, key, each)[0]

    def ensembled(self, classifiers: Mapping[int, Classifier]) -> dict[int, np.ndarray]:
        """M -> log of the mean of M probabilities `[t, c]` of test rows, one classifier for each.

        The transformations are those of `averages`.
        """
        key = jax.random.split(self.key(AVERAGE))[1]
        compute = functools.partial(ensemble.log_probabilities, classifiers=classifiers)
        title = f"ensemble of {max(classifiers)}, test rows"
        return self.pass_over(title, self.test.images, key, compute)

    def conditional(self) -> np.ndarray:
        """Features `[b, p, d]` of test images under many alphas and one beta for each image."""
        images = sample(self.test, self.settings.num_images, seed=self.settings.seed).images
        number = self.settings.num_alphas
        conditional = functools.partial(features.conditional_features, num_alphas=number)
        return self.pass_over(f"{number} alphas", images, self.key(CONDITIONAL), conditional)

    # Properties of the data and the transform ------------------------------------------------

    @property
    def standard(self) -> tuple[str, Pair]:
        """The usual features and their name: plain ones, or M=1 if there are none."""
        if self.always_transformed:
            return "M=1", self.single
        return "untransformed", self.plain

    @functools.cached_property
    def always_transformed(self) -> bool:
        """Whether the data has no untransformed version."""
        try:
            self.transform.untransformed(self.test.images[:1])
        except NoPlainVersion:
            return True
        return False

    @property
    def alpha_names(self) -> tuple[str, ...]:
        """Names of alpha's components."""
        return alpha_names(self.transform)

    # Passes over the data --------------------------------------------------------------------

    def _both(self, title: str, purpose: int | None, compute: Callable) -> tuple[Any, Any]:
        """`compute` of the training and the test rows, each with a key of its own, or none."""
        keys = (None, None) if purpose is None else jax.random.split(self.key(purpose))
        parts = (("training", self.train, keys[0]), ("test", self.test, keys[1]))
        train, test = (
            self.pass_over(f"{title}, {part} rows", split.images, key, compute)
            for part, split, key in parts
        )
        return train, test

    def pass_over(
        self, title: str, x: np.ndarray | Pictures, key: PRNGKeyArray | None, compute: Callable
    ) -> Any:
        """One pass over inputs with a progress bar.

        Args:
          title: of the bar.
          x: inputs, `[n, ...]`.
          key: of the transformations, None if there are none.
          compute: a function of `features.py`, all but its first four arguments bound.
        """
        given = (x,) if key is None else (x, key)
        options = {"batch_size": self.settings.batch_size, "memory": self.settings.memory}
        with bar(title, len(x), shown=self._progress) as progress:
            encode = self.encoder.encode_inputs
            return compute(encode, self.transform, *given, progress=progress, **options)


def labels_of(split: Split) -> np.ndarray:
    """The labels; raises a ValueError if there are none."""
    if split.labels is None:
        raise ValueError(
            "this protocol needs labels and the data set has none: add train_labels and "
            "test_labels to the npz file, or use only the protocols invariance and alpha"
        )
    return split.labels
