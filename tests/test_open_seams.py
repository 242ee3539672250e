"""Parts of one's own: train two steps, save, resume bit for bit, load and evaluate elsewhere."""

import os
import pathlib
import subprocess
import sys

import jax
import numpy as np
import optax
import pytest

import invclr_jax as ic
from invclr_jax.checkpoint import Checkpoints
from tests import own

ROOT = pathlib.Path(__file__).parents[1]


def config_for(**overrides):
    config = ic.default_config()
    config.data.name, config.batch_size, config.num_steps = "tests.own:pictures", 16, 2
    config.model.name, config.model.width = "resnet10", 4
    config.checkpoint.every_steps, config.log.every_steps, config.log.tensorboard = 1, 1, False
    config.penalty.num_samples, config.penalty.weight = 2, 0.1
    config.optimizer.base_learning_rate, config.optimizer.ramp_epochs = 0.5, 0.0
    config.update_from_flattened_dict(overrides)
    return config


def same_bits(one, other):
    for mine, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def straight_and_resumed(config, tmp_path, **objects):
    """Two steps in one go; one step, and the other after a restart. The same bits."""
    straight = ic.train(config, tmp_path / "straight", **objects)
    ic.train(config, tmp_path / "resumed", **objects)
    newest = tmp_path / "resumed" / "checkpoints" / "2"
    for path in sorted(newest.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    newest.rmdir()
    assert Checkpoints(tmp_path / "resumed").steps() == [1]
    resumed = ic.train(config, tmp_path / "resumed", **objects)
    same_bits(resumed.state, straight.state)
    return tmp_path / "straight"


SCRIPT = """
import sys
import numpy as np, jax
import invclr_jax as ic

workdir, trust = sys.argv[1], tuple(sys.argv[2].split(","))
encoder = ic.load_encoder(workdir, trust=trust)
x = np.load(sys.argv[3])
from invclr_jax.config import from_dict, load_data
dataset = load_data(from_dict(encoder.config.to_dict()), trust=trust)
settings = ic.Settings(num_images=16, num_alphas=4)
names = ["untransformed", "invariance", "alpha"]
scores = ic.evaluate(encoder, dataset, names, settings=settings)
print(type(encoder.module).__name__, type(encoder.transform).__name__, len(scores))
np.savez(sys.argv[4], z=encoder.encode(x), average=encoder.represent(x, jax.random.key(0), 3))
"""


def used_elsewhere(workdir, tmp_path):
    """Loads and evaluates the encoder in a new process; what it prints, and its features."""
    images = own.pictures().test.images[:5]
    np.save(tmp_path / "images.npy", images)
    environment = os.environ | {"XLA_FLAGS": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(workdir), "tests", *map(str, paths(tmp_path))],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "features.npz") as stored:
        features = dict(stored)
    here = ic.load_encoder(workdir, trust=("tests",))
    np.testing.assert_allclose(here.encode(images), features["z"], rtol=1e-4, atol=1e-5)
    key = jax.random.key(0)
    average = here.represent(images, key, 3)
    np.testing.assert_allclose(average, features["average"], rtol=1e-4, atol=1e-5)
    return done.stdout.split()


def paths(tmp_path):
    return tmp_path / "images.npy", tmp_path / "features.npz"


@pytest.mark.parametrize("name", ["PlainNet", "NormNet", "DropoutNet"])
def test_an_encoder_by_import_path(tmp_path, name):
    config = config_for(**{"model.name": f"tests.own:{name}"})
    config.transform.name = "tests.own:Shade"
    config.transform.options = {"darkest": 0.25}
    workdir = straight_and_resumed(config, tmp_path)
    assert used_elsewhere(workdir, tmp_path)[:2] == [name, "Shade"]
    assert ic.load_encoder(workdir, trust=("tests",)).transform.darkest == 0.25


def test_objects_are_recorded_by_their_import_path(tmp_path):
    workdir = straight_and_resumed(
        config_for(),
        tmp_path,
        encoder=own.NormNet(width=6),
        head=own.Head(4),
        transform=own.Shade(0.3),
        tx=optax.adamw(1e-3),
    )
    encoder = ic.load_encoder(workdir, trust=("tests",))
    assert encoder.module == own.NormNet(width=6)
    assert encoder.transform.darkest == 0.3
    assert encoder.config.head.to_dict() == {"name": "tests.own:Head", "options": {"output_dim": 4}}
    assert used_elsewhere(workdir, tmp_path)[:2] == ["NormNet", "Shade"]


def test_optimiser_schedule_and_method_by_import_path(tmp_path):
    config = config_for(method="tests.own:WarmSimCLR")
    config.optimizer.name, config.optimizer.options = "optax:adamw", {"weight_decay": 0.01}
    config.optimizer.schedule = "tests.own:halving"
    config.optimizer.schedule_options = {"start": 0.2}
    config.model.name, config.model.options = "tests.own:PlainNet", {"width": 3}
    writer = own.Collector()
    workdir = straight_and_resumed(config, tmp_path, writers=[writer])
    assert "warm" in writer.seen[0][1]
    stored = ic.load_encoder(workdir, trust=("tests",)).config
    assert stored.contrastive.temperature == 0.9


def test_dropout_is_on_in_training_and_off_afterwards(tmp_path):
    """With everything dropped, the trained representation is zero and the other is not."""
    config = config_for(**{"penalty.weight": 0.0, "num_steps": 1})
    seen = own.Collector()
    ic.train(config, tmp_path, encoder=own.DropoutNet(rate=1.0), writers=[seen])
    encoder = ic.load_encoder(tmp_path, trust=("tests",))
    assert np.abs(encoder.encode(own.pictures().test.images)).max() > 0
    # All projections are equal, so every candidate is as good as the right one.
    assert seen.seen[0][1]["contrastive"] == pytest.approx(np.log(16), rel=1e-4)


def test_an_object_that_has_no_name_is_asked_for(tmp_path):
    class Local(own.PlainNet):
        pass

    class Tint(own.Shade):
        pass

    ic.train(config_for(num_steps=1), tmp_path, encoder=Local(), transform=Tint())
    with pytest.raises(ValueError, match=r"transform was passed as an object.*pass.*transform="):
        ic.load_encoder(tmp_path, trust=("tests",))
    with pytest.raises(ValueError, match=r"encoder was passed as an object.*Local.*as module="):
        ic.load_encoder(tmp_path, transform=Tint(), trust=("tests",))
    encoder = ic.load_encoder(tmp_path, transform=Tint(), module=Local())
    assert encoder.encode(own.pictures().test.images[:2]).shape == (2, 5)


def test_a_data_set_that_has_no_name_is_asked_for(tmp_path):
    dataset = own.pictures()
    config = config_for(**{"data.name": "cifar10", "num_steps": 1})
    ic.train(config, tmp_path, dataset=dataset)
    from invclr_jax.config import from_dict, load_data

    encoder = ic.load_encoder(tmp_path)
    with pytest.raises(ValueError, match=r"data set was passed as an object, mine, .* as dataset="):
        load_data(from_dict(encoder.config.to_dict()))
    scores = ic.evaluate(encoder, dataset, ["untransformed"])
    assert 0 <= scores["probe/lbfgs/untransformed/accuracy"] <= 100


def test_an_encoder_that_gives_no_vectors_is_refused(tmp_path):
    import flax.linen as nn

    with pytest.raises(ValueError, match=r"encoder gives shape \(2, 8, 8, 3\).*average over pix"):
        ic.train(config_for(), tmp_path, encoder=nn.Conv(3, (3, 3)))
    assert not list(tmp_path.glob("checkpoints/*"))
