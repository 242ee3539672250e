"""Pictures with other than three channels, from an npz file through training to a probe."""

import numpy as np
import pytest

import invclr_jax as ic


@pytest.mark.parametrize("channels", [1, 5])
def test_a_run_from_npz(tmp_path, channels):
    rng = np.random.default_rng(0)
    labels = {part: np.arange(n) % 2 for part, n in (("train", 64), ("test", 32))}
    arrays = {f"{part}_labels": values for part, values in labels.items()}
    for part, values in labels.items():
        images = rng.integers(0, 120, (len(values), 8, 8, channels), dtype=np.uint8)
        images[..., 0] += (100 * values)[:, None, None].astype(np.uint8)
        arrays[f"{part}_images"] = images
    np.savez(tmp_path / "data.npz", **arrays)
    config = ic.default_config()
    config.data.name, config.data.path = "arrays", str(tmp_path / "data.npz")
    config.model.name, config.model.width, config.model.conv = "resnet10", 4, "xla"
    config.batch_size, config.num_steps, config.log.tensorboard = 16, 2, False
    config.transform.penalised = ("crop", "affine")
    config.transform.jitter_probability = config.transform.grey_probability = 0.0
    config.penalty.estimator = "forward"
    ic.train(config, tmp_path / "run")
    encoder = ic.load_encoder(tmp_path / "run")
    assert encoder.variables["params"]["stem_conv"]["kernel"].shape[2] == channels
    assert len(encoder.transform.mean) == channels
    dataset = ic.load_data("arrays", path=tmp_path / "data.npz")
    settings = ic.Settings(num_images=16, num_alphas=4)
    scores = ic.evaluate(encoder, dataset, ["untransformed", "invariance"], settings=settings)
    assert scores["probe/lbfgs/untransformed/accuracy"] > 60
    assert 0 < scores["invariance/ratio"] < 1


def test_colours_of_five_channels_are_refused(tmp_path):
    images = np.zeros((32, 8, 8, 5), np.uint8)
    dataset = ic.Dataset("arrays", ic.Split(images), None, mean=(0.5,) * 5, std=(0.2,) * 5)
    config = ic.default_config()
    config.data.name, config.batch_size, config.num_steps = "arrays", 16, 1
    config.model.name, config.model.width = "resnet10", 4
    with pytest.raises(ValueError, match=r"three|3"):
        ic.train(config, tmp_path, dataset=dataset)
    assert not list(tmp_path.glob("checkpoints/*"))
