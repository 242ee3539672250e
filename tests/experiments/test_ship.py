"""Shipping a run: weights that bfloat16 can hold, the encoder's scores, a record and a card."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import all_rows, ship
from invclr_jax.checkpoint import load_encoder, loading
from invclr_jax.evaluation import fingerprint, protocols
from tests.tiny_run import make_run, tiny_config, tiny_images

SCORES = {
    "probe": 81.0,
    "knn": 79.0,
    "error": 0.4,
    "rotated": 70.0,
    "corrupted": 60.0,
    "alpha": 0.1,
}


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    make_run(folder, tiny_config("arrays"), tiny_images())
    lines = [{"step": 2 * i, "loss": 1.0 / i, "images_per_second": 8.0} for i in (1, 2)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def shipped(monkeypatch, tmp_path, workdir):
    monkeypatch.setattr(loading, "SHIPPED", tmp_path)
    ship.write(load_encoder(workdir), tmp_path / "tiny-cpu")
    return load_encoder("tiny-cpu")


def test_shipped_weights_are_the_runs_to_eight_bits(shipped, workdir):
    before, after = load_encoder(workdir).variables, shipped.variables
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(other, one, rtol=2**-8)
        assert (np.asarray(other).view(np.uint32) & 0xFFFF == 0).all()
    assert any(
        bool(jnp.any(one != other))
        for one, other in zip(*map(jax.tree.leaves, (before, after)), strict=True)
    )


def test_a_shipped_workdir_holds_neither_optimiser_nor_path(shipped, tmp_path):
    (checkpoint,) = (tmp_path / "tiny-cpu" / "checkpoints").iterdir()
    assert not (checkpoint / "training").exists()
    assert shipped.config.data.path is None
    files = [path for path in checkpoint.rglob("*") if path.is_file()]
    assert [path for path in files if str(tmp_path).encode() in path.read_bytes()] == []


def test_colours_are_left_alone_in_the_mean_of_crops(shipped, monkeypatch):
    seen = {}

    def average(context):
        seen["transform"], seen["num_samples"] = context.transform, context.settings.num_samples
        names = [f"probe/lbfgs/M={m}/accuracy" for m in ship.SAMPLES]
        names += [
            f"probe/selected/M={ship.LARGEST}/accuracy",
            f"knn/k=200/M={ship.LARGEST}/accuracy",
        ]
        return dict(zip(names, (10.0, 20.0, 30.0, 40.0, 50.0), strict=True))

    monkeypatch.setattr(all_rows, "measure", lambda encoder, path: dict(SCORES))
    monkeypatch.setattr(protocols, "average", average)
    found = ship.scores(shipped, tiny_images(), None)
    assert found["probe"] == 81.0
    assert found["crops/M=32/paper"] == pytest.approx(30)
    assert found["crops/M=32/probe"] == pytest.approx(40)
    assert found["crops/M=32/knn"] == pytest.approx(50)
    assert seen["num_samples"] == ship.SAMPLES
    x = tiny_images().test.images[:4]
    alpha, beta = seen["transform"].sample(jax.random.key(0), 4)
    other = jnp.asarray(alpha) * 0.5
    same = seen["transform"].apply(x, alpha, beta) == seen["transform"].apply(x, other, beta)
    assert same.all(), "colours differ"


def test_the_record_and_the_card(shipped, workdir):
    scores = SCORES | {"crops/M=32/probe": 85.0, "crops/M=32/knn": 84.0}
    kept = ship.record("tiny-cpu", workdir, scores, "0.2.0+abc")
    assert kept["step"] == 4
    assert kept["scores"] == scores
    assert kept["seconds"]["train"] == 8.0
    assert kept["training"]["loss"] == [1.0, 0.5]
    assert kept["code"]["trained"]
    assert kept["code"]["scored"] == "0.2.0+abc"
    assert kept["weights"] == fingerprint.of_encoder(shipped.encode_inputs)
    assert kept["weights"] != fingerprint.of_encoder(load_encoder(workdir).encode_inputs)
    assert json.loads(json.dumps(kept)) == json.loads(json.dumps(kept, sort_keys=True))
    card = ship.card(kept)
    assert 'load_encoder("tiny-cpu")' in card
    assert "| probe, mean of 32 crops, % | 85 |" in card
    assert "binomial error is 0.4 %" in card


def test_a_record_of_other_weights_is_refused(shipped, workdir):
    scores = SCORES | {"crops/M=32/probe": 85.0, "crops/M=32/knn": 84.0}
    kept = ship.record("tiny-cpu", workdir, scores, "0.2.0+abc")
    ship.check("tiny-cpu", kept)
    with pytest.raises(ValueError, match="no record of the weights of tiny-cpu"):
        ship.check("tiny-cpu", kept | {"weights": "other"})


def test_the_card_tells_of_the_audit(shipped, workdir):
    metrics = {f"ratio/{part}": value for part, value in (("hue", 0.125), ("affine", 0.5))}
    metrics |= {"shift/pixels=3/consistency": 0.87, "alpha/linear/r2/hue": 0.25}
    audited = {"metrics": metrics, "parts": ["hue", "affine"], "about": {"images": 100}}
    scores = SCORES | {"crops/M=32/probe": 85.0, "crops/M=32/knn": 84.0}
    card = ship.card(ship.record("tiny-cpu", workdir, scores, "0.2.0+abc", audited))
    assert "on 100 test pictures" in card
    assert "87 % of the pictures keep" in card
    assert "| hue | 0.12 |  |  | 0.25 |" in card
    assert "| affine | 0.50 |  |  |  |" in card


def test_the_table_has_a_column_for_each_record(tmp_path):
    scores = SCORES | {"crops/M=32/probe": 85.123, "crops/M=32/knn": 84.0}
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"name": name, "scores": scores}))
    lines = ship.table(tmp_path).splitlines()
    assert lines[0] == "|  | `a` | `b` |"
    assert "| probe, mean of 32 crops, % | 85.12 | 85.12 |" in lines
