import contextlib
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.checkpoint import Checkpoints, DamagedCheckpointError, load_encoder
from invclr_jax.config import load_data
from invclr_jax.evaluation import passes
from invclr_jax.evaluation.probes import fit_regressor
from invclr_jax.models.build import build_encoder
from invclr_jax.objectives.features import unit_rows
from tests.tiny_run import make_run, tiny_config, tiny_images


@pytest.fixture(scope="module")
def spirograph(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("spirograph")
    config = tiny_config()
    dataset = load_data(config)
    return workdir, dataset, make_run(workdir, config, dataset)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("pictures")
    dataset = tiny_images()
    return workdir, dataset, make_run(workdir, tiny_config("arrays"), dataset)


def test_encoder_comes_back_as_it_was(spirograph):
    workdir, _, variables = spirograph
    encoder = load_encoder(workdir)
    assert encoder.step == 4
    assert encoder.config.model.width == 4
    jax.tree.map(np.testing.assert_array_equal, encoder.variables, dict(variables))


@pytest.mark.parametrize("n", [1, 33, 96])
def test_any_number_of_inputs_is_encoded_in_order(spirograph, n):
    encoder = load_encoder(spirograph[0])
    inputs = np.random.default_rng(0).random((n, 8, 8, 3), np.float32)
    expected = encoder.module.apply(encoder.variables, inputs)
    np.testing.assert_allclose(encoder.encode_inputs(inputs), expected, rtol=1e-5, atol=1e-6)


def test_other_weights_compile_nothing(spirograph):
    """Weights are arguments of the program, not constants in it."""
    one = load_encoder(spirograph[0])
    other = dataclasses.replace(one, variables=jax.tree.map(lambda leaf: leaf + 1, one.variables))
    images = np.random.default_rng(0).random((3, 8, 8, 3)).astype(np.float32)
    first = one.encode(images)
    compiled = passes.plain._cache_size()
    assert np.abs(np.asarray(other.encode(images) - first)).max() > 0
    assert passes.plain._cache_size() == compiled


@pytest.mark.parametrize(("n", "in_parts"), [(32, False), (33, True), (500, True)])
def test_cpus_encode_any_large_batch_in_parts(spirograph, n, in_parts):
    encoder = load_encoder(spirograph[0])
    inputs = jax.ShapeDtypeStruct((n, 8, 8, 3), "float32")
    program = jax.jit(lambda x: encoder.encode_inputs(x)).lower(inputs).as_text()
    assert ("stablehlo.while" in program) == in_parts


def test_encode_normalises_pictures_itself(pictures):
    workdir, dataset, variables = pictures
    encoder, images = load_encoder(workdir), dataset.test.images[:5]
    floats = (images / 255).astype(np.float32)
    module = build_encoder(encoder.config.model, image_size=8)
    mean, std = np.float32(dataset.mean), np.float32(dataset.std)
    expected = module.apply(variables, jnp.asarray((floats - mean) / std))
    np.testing.assert_allclose(encoder.encode(floats), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(encoder.encode(images), expected, rtol=1e-4, atol=1e-6)


def test_spirograph_images_are_encoded_as_they_are(spirograph):
    workdir, _, variables = spirograph
    encoder = load_encoder(workdir)
    images = np.random.default_rng(0).random((3, 8, 8, 3)).astype(np.float32)
    expected = encoder.module.apply(variables, jnp.asarray(images))
    np.testing.assert_allclose(encoder.encode(images), expected, rtol=1e-4, atol=1e-6)


def test_represent_averages_the_transformed_inputs(spirograph):
    workdir, dataset, _ = spirograph
    encoder, x = load_encoder(workdir), dataset.test.images[:6]
    one = encoder.represent(x, jax.random.key(0), num_samples=1)
    many = encoder.represent(x, jax.random.key(0), num_samples=64)
    other = encoder.represent(x, jax.random.key(1), num_samples=64)
    assert one.shape == (6, 32)
    spread, average = (np.abs(np.asarray(z - other)).mean() for z in (one, many))
    assert average < spread / 3, "64 samples must be far nearer to each other than 1 to 64"


def test_wrong_images_get_a_sentence(spirograph):
    encoder = load_encoder(spirograph[0])
    with pytest.raises(ValueError, match=r"images \[n, h, w, channels\], got shape \(8, 8, 3\)"):
        encoder.encode(np.zeros((8, 8, 3), np.float32))


def test_a_workdir_without_a_checkpoint_gets_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no checkpoint"):
        load_encoder(tmp_path)
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no complete checkpoint yet"):
        load_encoder(tmp_path)


def test_a_step_that_is_not_there_is_named(spirograph):
    with pytest.raises(ValueError, match=r"no checkpoint of step 7: there are \[4\]"):
        load_encoder(spirograph[0], step=7)


# Orbax leaves reads under way when one of them fails; they complain when they are collected.
abandoned_reads = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


@abandoned_reads
def test_a_truncated_checkpoint_gets_a_sentence(tmp_path):
    config = tiny_config()
    make_run(tmp_path, config, load_data(config))
    largest = max((tmp_path / "checkpoints").rglob("*"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:100])
    with pytest.raises(DamagedCheckpointError, match="cannot be read"):
        load_encoder(tmp_path)


@abandoned_reads
def test_the_newest_whole_checkpoint_is_found(tmp_path):
    """A damaged one is passed over with a warning; older ones are pruned by number."""
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in (1, 2, 3):
        tree = {"w": np.full(1000, step, np.float32)}
        checkpoints.save(step, tree, {"step": np.int32(step)}, tiny_config().to_dict())
    checkpoints.wait()
    assert checkpoints.steps() == [2, 3]
    checkpoints.close()
    for path in (tmp_path / "checkpoints" / "3" / "encoder").rglob("*"):
        if path.is_file() and path.stat().st_size > 200:
            path.write_bytes(b"")
    with contextlib.closing(Checkpoints(tmp_path)) as reader:
        step, parts = reader.newest({"encoder": {"w": np.zeros(1000, np.float32)}})
    assert step == 2
    np.testing.assert_array_equal(parts["encoder"]["w"], 2.0)


@abandoned_reads
def test_other_shapes_are_refused(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=1)
    checkpoints.save(
        1, {"w": np.zeros(4, np.float32)}, {"step": np.int32(1)}, tiny_config().to_dict()
    )
    checkpoints.wait()
    with pytest.raises(DamagedCheckpointError, match="cannot be read"):
        checkpoints.restore(1, {"encoder": {"w": np.zeros(5, np.float32)}})
    checkpoints.close()


def test_the_shipped_encoder_finds_the_factors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    encoder = load_encoder("spirograph-cpu")
    x = np.asarray(encoder.transform.x.sample(jax.random.key(0), 400))
    z = encoder.represent(x, jax.random.key(1), num_samples=4)
    fit = fit_regressor(z[:300], x[:300, :1], l2=1e-3)
    error = np.square(np.asarray(fit.predict(z[300:])) - x[300:, :1]).mean()
    assert error < 0.2 * x[:, 0].var(), "m is not told by a linear probe"
    assert not list(tmp_path.iterdir())


def test_the_shipped_encoder_of_pictures_knows_them_under_other_crops_and_colours():
    encoder = load_encoder("cifar10-cpu")
    coarse = jax.random.uniform(jax.random.key(0), (64, 8, 8, 3))
    x = 255 * jax.image.resize(coarse, (64, 32, 32, 3), "linear")
    x = np.asarray(x).astype(np.uint8)
    pair = [np.asarray(encoder.represent(x, jax.random.key(k), num_samples=4)) for k in (1, 2)]
    one, other = (unit_rows(z - z.mean(0)) for z in pair)
    found = np.mean((one @ other.T).argmax(1) == np.arange(64))
    assert found > 0.3, "random weights find 1 in 8, chance finds 1 in 64"
    assert encoder.encode(x[:2]).shape == (2, 8 * encoder.config.model.width)
