"""The fair probe: scales of features do not matter, and its error is the binomial one."""

import numpy as np
import pytest
from PIL import Image

from experiments import all_rows, mcnemar
from experiments.all_rows import alpha_explained, fit, rotate, score
from invclr_jax.checkpoint import load_encoder
from tests.tiny_run import make_run, tiny_config, tiny_images


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=1300)
    features = rng.normal(size=(1300, 6)) + 2.5 * np.eye(3, 6)[labels]
    return features.astype(np.float32), labels


def test_columns(rows):
    features, labels = rows
    parts = features[:900], features[900:], labels[:900], labels[900:]
    probe = fit(parts[0], parts[2], 3)
    found = score(probe, *parts)
    # Bayes' error of three classes 2.5·√2 apart is 7 % or so.
    assert 88 < found["probe"] < 98
    assert 85 < found["knn"] < 98
    share = found["probe"] / 100
    assert found["error"] == pytest.approx(100 * np.sqrt(share * (1 - share) / 400))
    scale = np.array([1, 100, 1e-3, 1, 10, 0.1], np.float32)
    scaled = score(
        fit(parts[0] * scale, parts[2], 3), parts[0] * scale, parts[1] * scale, *parts[2:]
    )
    assert scaled["probe"] == pytest.approx(found["probe"], abs=0.3)


def test_rotation_is_that_of_pillow():
    rng = np.random.default_rng(0)
    pictures = rng.integers(256, size=(2, 17, 17, 3), dtype=np.uint8)
    turned = rotate(pictures, 20)
    expected = Image.fromarray(pictures[1]).rotate(20, Image.Resampling.BILINEAR)
    inside = np.s_[5:12, 5:12]  # Pillow fills what comes from outside with black
    np.testing.assert_allclose(turned[1][inside], np.asarray(expected)[inside] / 255, atol=0.005)


def test_alpha_is_explained_by_what_is_linear_in_it_and_not_by_noise():
    rng = np.random.default_rng(0)
    alpha, noise = rng.uniform(size=(600, 3)), rng.normal(size=(600, 5))
    linear = np.concatenate([alpha @ rng.normal(size=(3, 4)), noise[:, :1]], axis=1)
    parts = np.s_[:400], np.s_[400:]
    for z, low, high in ((linear, 0.99, 1), (noise, 0, 0.05)):
        explained = alpha_explained(*(rows[part] for part in parts for rows in (z, alpha)))
        assert low <= explained <= high


def test_brief_measurements_are_those_of_the_whole(tmp_path, monkeypatch):
    """Every column is measured; the brief columns do not depend on what else is."""
    data = tiny_images()
    make_run(tmp_path, tiny_config("arrays"), data)
    monkeypatch.setattr(all_rows, "load", lambda name, path: data)
    monkeypatch.setattr(all_rows, "NAMES", ("brightness",))
    monkeypatch.setattr(all_rows, "SEVERITIES", (1,))
    monkeypatch.setattr(all_rows, "DEGREES", (10,))
    monkeypatch.setattr(all_rows, "FEW", {"few/1": 24, "few/10": 48})
    encoder = load_encoder(tmp_path)
    whole, brief = (m(encoder, None) for m in (all_rows.measure, all_rows.measure_briefly))
    assert whole.keys() == {*all_rows.COLUMNS, "hits"}
    assert {*all_rows.BRIEF} < brief.keys() < whole.keys()
    assert brief == {name: whole[name] for name in brief}
    assert whole["probe"] == 100 * np.mean(mcnemar.unpack(whole["hits"]))
