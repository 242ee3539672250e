"""Two tiny encoders with their data: classes of pictures, and factors of Spirograph."""

import pytest

from invclr_jax.checkpoint import load_encoder
from invclr_jax.config import load_data
from invclr_jax.evaluation.context import Context
from tests.evaluation.contexts import SETTINGS
from tests.tiny_run import make_run, tiny_config, tiny_images


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    workdir, dataset = tmp_path_factory.mktemp("pictures"), tiny_images()
    make_run(workdir, tiny_config("arrays"), dataset)
    return Context(load_encoder(workdir), dataset, SETTINGS)


@pytest.fixture(scope="session")
def spirograph(tmp_path_factory):
    workdir, config = tmp_path_factory.mktemp("spirograph"), tiny_config()
    dataset = load_data(config)
    make_run(workdir, config, dataset)
    return Context(load_encoder(workdir), dataset, SETTINGS)
