"""What protocols work on: samples of the data, features, and what the transform says."""

import contextlib
import dataclasses

import jax
import numpy as np
import pytest

from invclr_jax.data import Dataset
from invclr_jax.data.dataset import Split
from invclr_jax.evaluation import context as context_module
from invclr_jax.evaluation import protocols
from invclr_jax.evaluation.context import Context
from invclr_jax.evaluation.settings import Settings
from tests.evaluation.contexts import SETTINGS, by_class


def test_a_limit_keeps_every_class_of_sorted_data(pictures):
    train, test = by_class(pictures.dataset.train), by_class(pictures.dataset.test)
    dataset = dataclasses.replace(pictures.dataset, train=train, test=test)
    context = Context(pictures.encoder, dataset, dataclasses.replace(SETTINGS, limit=12))
    assert np.bincount(context.train.labels).tolist() == [4, 4, 4]
    assert np.bincount(context.test.labels).tolist() == [4, 4, 4]
    assert protocols.untransformed(context)["probe/lbfgs/untransformed/accuracy"] >= 0


def test_only_a_missing_plain_version_counts_as_one(pictures):
    @dataclasses.dataclass(frozen=True)
    class Broken(type(pictures.transform)):
        def untransformed(self, x):
            raise ValueError("the file of means is damaged")

    fields = {f.name: getattr(pictures.transform, f.name) for f in dataclasses.fields(Broken)}
    encoder = dataclasses.replace(pictures.encoder, transform=Broken(**fields))
    context = Context(encoder, pictures.dataset, SETTINGS)
    with pytest.raises(ValueError, match="file of means is damaged"):
        protocols.untransformed(context)


def test_missing_labels_get_a_sentence(pictures):
    bare = Dataset("arrays", Split(pictures.train.images), Split(pictures.test.images))
    context = Context(pictures.encoder, bare, SETTINGS)
    with pytest.raises(ValueError, match="needs labels and the data set has none"):
        protocols.untransformed(context)
    assert protocols.conditional_variance(context)["invariance/total_variance"] > 0


def test_a_data_set_without_test_split_gets_a_sentence(pictures):
    with pytest.raises(ValueError, match="has no test split"):
        Context(pictures.encoder, Dataset("arrays", pictures.train, None), SETTINGS)


def test_shifted_draws_are_applied_as_the_shifted_transform_would(spirograph):
    """Only the distribution moves: our own `apply` on its draws is what it would render."""
    moved = spirograph.transform.shifted(0.3, ("h",))
    z = spirograph.drawn_from(moved, 3)[1]
    key = jax.random.split(spirograph.key(3))[1]
    alpha, beta = moved.sample(key, len(spirograph.test))
    images = moved.apply(spirograph.test.images, alpha, beta)
    np.testing.assert_allclose(z, spirograph.encoder.encode(images), rtol=1e-4, atol=1e-5)
    assert alpha[:, 0].min() > 0.8


def test_every_pass_over_data_counts_all_of_its_rows(pictures, monkeypatch):
    passes = []

    @contextlib.contextmanager
    def bar(title, num_rows, *, shown):
        counted = []
        yield counted.append
        passes.append((title, num_rows, sum(counted), shown))

    monkeypatch.setattr(context_module, "bar", bar)
    settings = dataclasses.replace(SETTINGS, num_samples=(1,), ensemble_samples=1)
    context = Context(pictures.encoder, pictures.dataset, settings, progress=True)
    for compute in (
        lambda: context.plain,
        lambda: context.averages,
        lambda: context.with_alpha(2),
        lambda: context.drawn_from(context.transform, 3),
    ):
        compute()
        titles, expected, rows, shown = zip(*passes, strict=True)
        assert rows == expected == (96, 48)
        assert all(shown)
        assert ["training" in title for title in titles] == [True, False]
        passes.clear()
    context.conditional()
    assert passes == [("6 alphas", 10, 10, True)]
    passes.clear()
    context.samples(1)
    assert passes == [("1 transformations, training rows", 96, 96, True)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_samples": (0,)}, "M must be at least 1"),
        ({"num_samples": ()}, "M must be at least 1"),
        ({"fractions": (1.5,)}, "above 0, at most 1"),
        ({"l2": -1.0}, "l2 is -1.0"),
        ({"num_alphas": 1}, "num_alphas is 1: use at least 2"),
        ({"limit": 1}, "limit is 1"),
        ({"ensemble_samples": 0}, "ensemble_samples is 0: use at least 1"),
    ],
)
def test_nonsense_settings_get_a_sentence(options, words):
    with pytest.raises(ValueError, match=words):
        Settings(**options)
