"""Training on streamed pictures: what arrays give, resumed exactly, evaluated as arrays are."""

import dataclasses
import shutil

import jax
import numpy as np
import pytest

from invclr_jax import config as configuration
from invclr_jax import data
from invclr_jax.checkpoint import load_encoder
from invclr_jax.evaluation import fingerprint, protocols
from invclr_jax.evaluation.context import Context
from invclr_jax.evaluation.settings import Settings
from tests.data.streaming import made
from tests.training.small import small_config, small_encoder, train_small

pytest.importorskip("grain")

OPTIONS = {
    "data.stream.workers": 0,
    "data.stream.size": 12,  # the crop is taken from more than the encoder sees
    "num_steps": 4,
    "penalty.weight": 0.0,
    "checkpoint.every_steps": 2,
    "log.tensorboard": False,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made.make_folder(tmp_path_factory.mktemp("pictures"), train=48, test=24)


def config_of(folder, **options):
    return small_config("stream", **OPTIONS | {"data.path": str(folder)} | options)


def in_memory(dataset):
    train, test = (
        data.Split(split.images[:], split.labels) for split in (dataset.train, dataset.test)
    )
    return dataclasses.replace(dataset, train=train, test=test)


def assert_equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one.state.params, other.state.params)


@pytest.fixture(scope="module")
def streamed(folder, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("run")
    return workdir, train_small(config_of(folder), workdir)


def test_a_stream_trains_as_arrays_do(folder, streamed, tmp_path):
    config = config_of(folder)
    dataset = in_memory(configuration.load_data(config))
    assert_equal(train_small(config, tmp_path, dataset=dataset), streamed[1])


def test_resuming_is_exact(folder, streamed, tmp_path):
    shutil.copytree(streamed[0], tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "checkpoints" / "4")
    rest = train_small(config_of(folder, **{"data.stream.workers": 1}), tmp_path)
    assert rest.step == 4
    assert_equal(rest, streamed[1])


def test_evaluation_reads_pictures_as_they_are_needed(folder, streamed):
    encoder = load_encoder(streamed[0], module=small_encoder(config_of(folder)))
    dataset = configuration.load_data(config_of(folder))
    settings = Settings(num_samples=(1, 2), num_images=8, num_alphas=3, batch_size=3, limit=30)
    contexts = [Context(encoder, each, settings) for each in (dataset, in_memory(dataset))]
    streaming, arrays = (
        {name: protocols.PROTOCOLS[name](context) for name in ("untransformed", "invariance")}
        for context in contexts
    )
    assert streaming == arrays
    outcome = dict(protocols.run(contexts[0], ["corruption"]))["corruption"]
    assert "this one is streamed: load it into memory" in outcome.reason


def test_results_of_other_pictures_are_not_reused(folder, tmp_path):
    def checksum(**options):
        dataset = data.load("stream", path=folder, statistics=0, **options)
        return fingerprint.of_data(dataset, dataset.train, dataset.test)

    assert checksum(size=12) == checksum(size=12)
    assert checksum(size=12) != checksum(size=13)
    dataset = data.load("stream", path=folder, statistics=0, size=12)
    part = data.sample(dataset.train, 10)
    assert fingerprint.of_data(dataset, part, dataset.test) != checksum(size=12)
