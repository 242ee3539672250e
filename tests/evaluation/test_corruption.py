"""The corruption protocol on a small encoder, and the reader of the published files."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.data import Dataset, Split
from invclr_jax.data.corrupted import load_corrupted
from invclr_jax.evaluation import features
from invclr_jax.evaluation.context import Context
from invclr_jax.evaluation.corruption import corruption
from invclr_jax.evaluation.downstream import fit_probe
from invclr_jax.evaluation.outcomes import NotApplicableError
from invclr_jax.evaluation.settings import Settings
from invclr_jax.transforms.corruptions import NAMES, SEVERITIES
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.spirograph import SpirographTransform
from tests.tiny_run import tiny_images

WEIGHTS = np.random.default_rng(0).normal(size=(192, 6)).astype(np.float32) / 14


class Encoder:
    """tanh of a linear map."""

    transform = ImageTransform(8, (0.4, 0.3, 0.3), (0.2, 0.2, 0.2))

    @staticmethod
    def encode_inputs(images):
        return jnp.tanh(images.reshape(len(images), -1) @ WEIGHTS)


SETTINGS = Settings(num_samples=(1, 4, 50), num_images=10, num_alphas=4, batch_size=48)


@pytest.fixture(scope="module")
def context():
    return Context(Encoder(), tiny_images(), SETTINGS)


def test_clean_pictures_score_as_clean_ones(context):
    metrics = corruption(context, lambda name, severity: context.test)
    for kind in ("untransformed", "M=4"):  # the largest M up to ten
        clean = metrics[f"corruption/{kind}/clean/accuracy"]
        assert 40 < clean <= 100
        for name in NAMES:
            for severity in SEVERITIES:
                assert metrics[f"corruption/{kind}/{name}/severity={severity}/accuracy"] == clean
        assert metrics[f"corruption/{kind}/mean/accuracy"] == pytest.approx(clean)
        assert metrics[f"corruption/{kind}/severity=5/accuracy"] == pytest.approx(clean)
        assert metrics[f"corruption/{kind}/relative"] == pytest.approx(1)
    assert len(metrics) == 2 * (1 + 75 + 3)


def test_summaries_are_means(context):
    """Pictures of noise at severity 5, and of class 0 for fog at severity 1."""
    noise = np.random.default_rng(1).integers(0, 256, context.test.images.shape, np.uint8)
    zeros = Split(context.test.images, np.zeros_like(context.test.labels))

    def source(name, severity):
        if name == "fog" and severity == 1:
            return zeros
        return Split(noise, context.test.labels) if severity == 5 else context.test

    metrics = corruption(context, source)
    probe = fit_probe(context, context.plain[0])

    def score(images, labels):
        z = features.plain_features(Encoder.encode_inputs, Encoder.transform, images)
        return 100 * np.mean(np.asarray(probe.predict(z)) == labels)

    clean = score(context.test.images, context.test.labels)
    noisy, fog = score(noise, context.test.labels), score(zeros.images, zeros.labels)
    prefix = "corruption/untransformed"
    assert metrics[f"{prefix}/fog/severity=1/accuracy"] == pytest.approx(fog)
    assert metrics[f"{prefix}/snow/severity=5/accuracy"] == pytest.approx(noisy)
    assert metrics[f"{prefix}/severity=5/accuracy"] == pytest.approx(noisy)
    mean = (15 * noisy + fog + 59 * clean) / 75
    assert metrics[f"{prefix}/mean/accuracy"] == pytest.approx(mean)
    assert metrics[f"{prefix}/relative"] == pytest.approx(mean / clean)
    assert noisy < clean


def test_test_rows_are_corrupted_by_default(context, monkeypatch):
    calls = []

    def corrupt(images, name, severity, key):
        calls.append((name, severity, jax.random.key_data(key).tolist()))
        np.testing.assert_array_equal(images, context.test.images)
        return images

    monkeypatch.setattr("invclr_jax.evaluation.corruption.corrupt", corrupt)
    corruption(context)
    assert [call[:2] for call in calls] == [(n, s) for n in NAMES for s in SEVERITIES]
    assert len({tuple(call[2]) for call in calls}) == len(NAMES)  # not from one severity to another


def test_where_it_makes_no_sense():
    grey = tiny_images()
    grey = Dataset(
        "arrays", *(Split(s.images[..., :1], s.labels) for s in (grey.train, grey.test)), 3
    )
    with pytest.raises(NotApplicableError, match="RGB"):
        corruption(Context(Encoder(), grey, SETTINGS))
    numbers = np.random.default_rng(0).random((20, 4), np.float32)
    curves = Encoder()
    curves.transform = SpirographTransform(size=8)
    split = Split(numbers, numbers)
    with pytest.raises(NotApplicableError, match="no classes"):
        corruption(Context(curves, Dataset("spirograph", split, split), SETTINGS))


# The published files ---------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    pictures = np.random.default_rng(0).integers(0, 256, (5 * 48, 8, 8, 3), np.uint8)
    for name in NAMES:
        np.save(tmp_path / f"{name}.npy", pictures)
    np.save(tmp_path / "labels.npy", np.arange(5 * 48) % 3)
    return tmp_path, pictures


def test_published_files_are_read_by_severity(folder, context):
    path, pictures = folder
    split = load_corrupted(path, "fog", 3)
    np.testing.assert_array_equal(split.images, pictures[96:144])
    np.testing.assert_array_equal(split.labels, np.arange(96, 144) % 3)
    metrics = corruption(context, functools.partial(load_corrupted, path))
    by_name = [metrics[f"corruption/M=4/{name}/severity=2/accuracy"] for name in NAMES]
    assert len(set(by_name)) == 1  # all files are the same here


def test_broken_files_are_named(folder):
    path, pictures = folder
    with pytest.raises(ValueError, match="severity is 6: use an integer from 1 to 5"):
        load_corrupted(path, "fog", 6)
    with pytest.raises(FileNotFoundError, match=r"rain.npy does not exist \(there are brightness"):
        load_corrupted(path, "rain", 1)
    np.save(path / "fog.npy", pictures[:7])
    with pytest.raises(ValueError, match=r"fog.npy holds uint8 of shape \(7, 8, 8, 3\)"):
        load_corrupted(path, "fog", 1)
    np.save(path / "snow.npy", pictures[:50])
    with pytest.raises(ValueError, match=r"labels of shape \(240,\) for 50 images"):
        load_corrupted(path, "snow", 1)
    (path / "frost.npy").write_bytes(b"no")
    with pytest.raises((ValueError, EOFError), match=r"frost.npy is not an npy file"):
        load_corrupted(path, "frost", 1)
    np.save(path / "labels.npy", np.array([{}] * 240, object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"labels.npy is not an npy file of numbers"):
        load_corrupted(path, "pixelate", 1)
    with pytest.raises(FileNotFoundError, match=r"there is no .npy file"):
        load_corrupted(path / "nowhere", "fog", 1)
