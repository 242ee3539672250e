import sys

import numpy as np
import pytest
import tensorflow_datasets as tfds

from invclr_jax import data
from invclr_jax.transforms import spirograph_tfds
from invclr_jax.transforms.spirograph import SpirographTransform


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    config = spirograph_tfds.SpirographConfig(
        name="tiny", seed=3, num_train=12, num_test=5, size=16
    )
    folder = tmp_path_factory.mktemp("tfds")
    builder = spirograph_tfds.Spirograph(config=config, data_dir=folder, file_format="array_record")
    builder.download_and_prepare()
    return folder / "spirograph" / "tiny" / "1.0.0"


@pytest.mark.parametrize(("part", "num"), [("train", 12), ("test", 5)])
def test_prepared_pictures_are_read_back_with_what_made_them(prepared, part, num):
    source = tfds.builder_from_directory(prepared).as_data_source(part)
    rows = [source[i] for i in range(len(source))]
    image, factors, nuisances = (
        np.stack([row[name] for row in rows]) for name in ("image", "factors", "nuisances")
    )
    expected = data.load("spirograph", seed=3, num_train=12, num_test=5)
    np.testing.assert_array_equal(factors, getattr(expected, part).images)
    transform = SpirographTransform(size=16)
    rendered = np.asarray(transform.apply(factors, nuisances, None))
    assert image.shape == (num, 16, 16, 3)
    assert np.abs(image - 255 * rendered).max() <= 0.5 + 1e-2
    assert "tensorflow" not in sys.modules


def test_nuisances_fill_their_box():
    transform = SpirographTransform()
    nuisances = spirograph_tfds.draw_nuisances(transform, 0, "train", 4000)
    box = transform.alpha
    uniform = (nuisances - box.low) / (box.high - box.low)
    np.testing.assert_allclose(uniform.mean(0), 0.5, atol=5 / np.sqrt(12 * 4000))
    assert np.abs(uniform - 0.5).max() <= 0.5 + 1e-6
    test = spirograph_tfds.draw_nuisances(transform, 0, "test", 4000)
    assert (nuisances != test).mean() > 0.99


def test_both_forms_are_registered():
    assert {"paper", "authors"} == set(spirograph_tfds.Spirograph.builder_configs)
    registered = tfds.core.registered.imported_builder_cls("spirograph")
    assert registered is spirograph_tfds.Spirograph
