"""Exports are checked by running them: torchvision, and JAX without this package."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import invclr_jax as ic
from invclr_jax.checkpoint import exporting, onnx_export
from invclr_jax.models import network, resnet
from invclr_jax.transforms.image import ImageTransform

TRANSFORM = ImageTransform(16, (0.5, 0.4, 0.3), (0.2, 0.2, 0.1))

RUN = """
import sys
import jax, numpy as np
program = jax.export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
images = np.load(sys.argv[2])
np.save(sys.argv[3], np.concatenate([program.call(images[:2]), program.call(images[2:])]))
print(program.platforms, any(name.startswith("invclr") for name in sys.modules))
"""


@pytest.fixture(scope="module")
def encoder():
    module = resnet.ResNet10(width=4)
    init = jax.jit(lambda key, x: network.init(module, key, x)[:2])
    params, statistics = init(jax.random.key(0), np.zeros((2, 16, 16, 3), np.float32))
    rng = np.random.default_rng(0)
    noisy = jax.tree.map(lambda a: a + 0.1 * rng.random(a.shape, np.float32), statistics)
    return ic.Encoder(module=module, variables={"params": params, **noisy}, transform=TRANSFORM)


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(1).random((5, 16, 16, 3), np.float32)


def test_the_program_runs_without_this_package(encoder, images, tmp_path):
    exporting.to_program(encoder, tmp_path / "program", shape=(16, 16, 3))
    np.save(tmp_path / "images.npy", images)
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "PYTHONPATH")}
    names = ("program", "images.npy", "z.npy")
    done = subprocess.run(
        [sys.executable, "-c", RUN, *(str(tmp_path / name) for name in names)],
        cwd=tmp_path,
        env=environment | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip() == "('cpu', 'cuda', 'tpu') False", done.stderr
    expected = encoder.encode(images)
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.filterwarnings("ignore")  # of jax2onnx
def test_onnx_runtime_gives_the_same_features(encoder, images, tmp_path):
    pytest.importorskip("jax2onnx")
    runtime = pytest.importorskip("onnxruntime")
    path = tmp_path / "encoder.onnx"
    onnx_export.to_onnx(encoder, path, shape=(16, 16, 3))
    session = runtime.InferenceSession(path)
    name = session.get_inputs()[0].name
    for rows in (images, images[:2]):
        z = session.run(None, {name: rows})[0]
        np.testing.assert_allclose(z, encoder.encode(rows), atol=1e-5)


def test_plain_python_functions_cannot_be_exported(tmp_path):
    encoder = ic.Encoder.from_function(lambda x: np.asarray(x).mean((1, 2)), TRANSFORM)
    with pytest.raises(ValueError, match="plain Python function"):
        exporting.to_program(encoder, tmp_path / "program", shape=(16, 16, 3))
    with pytest.raises(ValueError, match="only ResNets have torchvision's names"):
        exporting.to_safetensors(encoder, tmp_path / "weights.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_file_of_weights_is_read_back_as_it_was(encoder, tmp_path):
    path = tmp_path / "weights.safetensors"
    exporting.to_safetensors(encoder, path)
    again = ic.load_torch(path, encoder.module)
    jax.tree.map(np.testing.assert_array_equal, again.variables, dict(encoder.variables))


def test_torchvision_takes_the_weights_and_gives_the_features(x64, tmp_path):
    peer = pytest.importorskip("tests.checkpoint.torchvision_peer")
    load_file = pytest.importorskip("safetensors.torch").load_file
    network_there = peer.resnet("resnet18", "cifar", seed=1)
    first = tmp_path / "first.safetensors"
    pytest.importorskip("safetensors.torch").save_file(network_there.state_dict(), first)
    ours = ic.load_torch(first, resnet.ResNet18(conv="xla"))
    exporting.to_safetensors(ours, tmp_path / "second.safetensors")
    fresh = peer.resnet("resnet18", "cifar", seed=2)
    missing = fresh.load_state_dict(load_file(tmp_path / "second.safetensors"), strict=False)
    assert not missing.unexpected_keys
    assert all(name.endswith("num_batches_tracked") for name in missing.missing_keys)
    pictures = np.random.default_rng(0).random((2, 16, 16, 3))
    with peer.torch.inference_mode():
        there = fresh(peer.torch.from_numpy(pictures.transpose(0, 3, 1, 2))).numpy()
    np.testing.assert_allclose(ours.encode(pictures), there, rtol=1e-9)
