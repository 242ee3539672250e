"""Weights of PyTorch: against torchvision's forward pass; files that are not what they say."""

import io
import pickle
import zipfile

import jax
import numpy as np
import pytest

import invclr_jax as ic
from invclr_jax.models import resnet
from tests.checkpoint import torchvision_peer as peer
from tests.reference import relative_error

torch = peer.torch
safetensors_torch = pytest.importorskip("safetensors.torch")

OURS = {"resnet18": resnet.ResNet18, "resnet34": resnet.ResNet34, "resnet50": resnet.ResNet50}


@pytest.fixture(scope="module")
def network():
    return peer.resnet("resnet18", "cifar")


def small(stem="cifar"):
    return resnet.ResNet18(stem=stem, conv="xla")


@pytest.mark.parametrize("stem", ["standard", "cifar"])
@pytest.mark.parametrize("name", OURS)
def test_features_are_torchvisions(name, stem, x64, tmp_path):
    network = peer.resnet(name, stem)
    path = tmp_path / "weights.safetensors"
    safetensors_torch.save_file(network.state_dict(), path)
    encoder = ic.load_torch(path, OURS[name](stem=stem, conv="xla"))
    # An odd side: padding and stride must agree at both edges.
    side = 65 if stem == "standard" else 17
    images = np.random.default_rng(0).random((2, side, side, 3))
    with torch.inference_mode():
        expected = network(torch.from_numpy(images.transpose(0, 3, 1, 2))).numpy()
    z = np.asarray(encoder.encode(images))
    assert z.dtype == np.float64
    assert relative_error(z, expected) < 1e-9


@pytest.mark.parametrize(
    "rename",
    [
        lambda name: name,
        lambda name: "module.encoder_q." + name,
        lambda name: "backbone." + name,
        lambda name: "backbone." + sequence(name),
    ],
)
@pytest.mark.parametrize("wrap", [lambda d: d, lambda d: {"state_dict": d, "epoch": 3}])
def test_pth_files_and_prefixes_give_the_same_weights(rename, wrap, network, tmp_path):
    state = network.float().state_dict()
    renamed = {rename(name): value for name, value in state.items()}
    renamed |= {"projector.0.weight": torch.zeros(3, 3), "fc.weight": torch.zeros(10, 512)}
    torch.save(wrap(renamed), tmp_path / "weights.pth")
    safetensors_torch.save_file(state, tmp_path / "weights.safetensors")
    encoder = ic.load_torch(tmp_path / "weights.pth", small())
    expected = ic.load_torch(tmp_path / "weights.safetensors", small())
    jax.tree.map(np.testing.assert_array_equal, encoder.variables, expected.variables)


def sequence(name):
    """As `nn.Sequential(*children)` calls it, without pooling: lightly's backbones."""
    layers = ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4")
    first, _, rest = name.partition(".")
    return f"{layers.index(first)}.{rest}"


def test_tensors_that_are_views_of_a_storage_are_read_right(tmp_path):
    from invclr_jax.checkpoint import torch_file

    whole = torch.arange(24.0).reshape(4, 6)
    views = {
        "part": whole[1:3, ::2],
        "turned": whole.T,
        "half": whole[0].half(),
        "one": whole[2, 3],
    }
    torch.save(views, tmp_path / "views.pth")
    read = torch_file.read(tmp_path / "views.pth")
    for name, tensor in views.items():
        np.testing.assert_array_equal(read[name], tensor.numpy())


class Hostile:
    def __reduce__(self):
        return (print, ("executed",))


def hostile(path):
    torch.save({"conv1.weight": Hostile()}, path)


def other_storage(path):
    """A state dict whose tensor claims to be larger than its storage."""
    torch.save({"conv1.weight": torch.zeros(3)}, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content[:4] if "/data/0" in name else content)


def plain_pickle(path):
    path.write_bytes(pickle.dumps({"conv1.weight": np.zeros(3)}))


def truncated(path):
    file = io.BytesIO()
    torch.save({"conv1.weight": torch.zeros(300)}, file)
    path.write_bytes(file.getvalue()[:-200])


def no_tensors(path):
    torch.save({"epoch": 3}, path)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (hostile, "it asks for (__builtin__|builtins).print"),
        (other_storage, "not of its declared size"),
        (plain_pickle, "not a .pth file"),
        (truncated, "not a .pth file"),
        (no_tensors, "no tensors by name"),
    ],
)
def test_damaged_and_hostile_files_are_refused(write, sentence, tmp_path, capsys):
    write(tmp_path / "weights.pth")
    with pytest.raises(ValueError, match=sentence):
        ic.load_torch(tmp_path / "weights.pth", small())
    assert "executed" not in capsys.readouterr().out


def test_a_truncated_safetensors_file_is_refused(network, tmp_path):
    path = tmp_path / "weights.safetensors"
    safetensors_torch.save_file(network.state_dict(), path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="not a complete safetensors file"):
        ic.load_torch(path, small())
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ic.load_torch(tmp_path / "nothing.pth", small())


@pytest.mark.parametrize(
    ("change", "module", "sentence"),
    [
        (
            lambda s: s,
            resnet.ResNet34(stem="cifar"),
            "no layer1.2.bn1.*nearest name is layer",
        ),
        (lambda s: s, resnet.ResNet10(stem="cifar"), "has layer1.1.*ResNet10 has not"),
        (lambda s: s, small("standard"), r"conv1.weight .* shape \(3, 3, 3, 64\)"),
        (lambda s: {n.replace("bn2", "norm2"): v for n, v in s.items()}, small(), "norm2"),
        (lambda s: {"blocks.0.weight": s["conv1.weight"]}, small(), "nearest name is blocks.0"),
        (
            lambda s: {p + n: v for p in ("a.", "b.") for n, v in s.items()},
            small(),
            "choose one by prefix, one of 'a.', 'b.'",
        ),
    ],
)
def test_names_that_do_not_fit_are_told(change, module, sentence, network, tmp_path):
    path = tmp_path / "weights.safetensors"
    state = {name: value.clone() for name, value in change(network.state_dict()).items()}
    safetensors_torch.save_file(state, path)
    with pytest.raises(ValueError, match=sentence):
        ic.load_torch(path, module)
