"""torchvision's ResNets with weights and statistics that are not those of a fresh network."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")


def models():
    """`torchvision.models`, also where its compiled operators do not fit this torch."""
    try:
        return pytest.importorskip("torchvision.models", exc_type=ImportError)
    except RuntimeError:  # "operator torchvision::nms does not exist": a ResNet needs none of them
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        models.library = library  # its operators live as long as it does
        import torchvision.models

        return torchvision.models


def resnet(name, stem="standard", seed=0):
    """A float64 network in eval mode without its last layer."""
    torch.manual_seed(seed)
    network = getattr(models(), name)(weights=None)
    if stem == "cifar":
        network.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        network.maxpool = torch.nn.Identity()
    network.fc = torch.nn.Identity()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.8, 1.2)
            module.weight.data.uniform_(0.5, 1.0)
            module.bias.data.normal_(0, 0.1)
    return network.double().eval()
