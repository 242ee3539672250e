"""ResNets in PyTorch with the CIFAR stem, as the authors' encoders: the references for speed."""

import torch
from torch import nn


class _Block(nn.Module):
    """`relu(residual(x) + shortcut(x))`; modules have the names of our Flax parameters."""

    expansion = 1

    def __init__(self, channels: int, features: int, stride: int):
        super().__init__()
        self.make_residual(channels, features, stride)
        outputs = features * self.expansion
        self.changes_shape = stride > 1 or channels != outputs
        if self.changes_shape:
            self.downsample_conv = nn.Conv2d(channels, outputs, 1, stride, bias=False)
            self.downsample_bn = nn.BatchNorm2d(outputs)

    def make_residual(self, channels: int, features: int, stride: int) -> None:
        """Adds the layers of the residual branch."""
        raise NotImplementedError

    def residual(self, x: torch.Tensor) -> torch.Tensor:
        """The residual branch."""
        raise NotImplementedError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        shortcut = self.downsample_bn(self.downsample_conv(x)) if self.changes_shape else x
        return torch.relu_(self.residual(x) + shortcut)


class BasicBlock(_Block):
    """Two 3×3 convolutions."""

    def make_residual(self, channels: int, features: int, stride: int):
        """Adds the layers of the residual branch."""
        self.conv1 = nn.Conv2d(channels, features, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(features)
        self.conv2 = nn.Conv2d(features, features, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(features)

    def residual(self, x):
        """The residual branch."""
        return self.bn2(self.conv2(torch.relu_(self.bn1(self.conv1(x)))))


class Bottleneck(_Block):
    """1×1, 3×3 and 1×1 convolutions; the stride sits in the 3×3."""

    expansion = 4

    def make_residual(self, channels: int, features: int, stride: int):
        """Adds the layers of the residual branch."""
        self.conv1 = nn.Conv2d(channels, features, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(features)
        self.conv2 = nn.Conv2d(features, features, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(features)
        self.conv3 = nn.Conv2d(features, 4 * features, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * features)

    def residual(self, x):
        """The residual branch."""
        x = torch.relu_(self.bn1(self.conv1(x)))
        x = torch.relu_(self.bn2(self.conv2(x)))
        return self.bn3(self.conv3(x))


class ResNet(nn.Module):
    """Images `[n, 3, h, w]` to representations `[n, d]`.

    Args:
      block: `BasicBlock` or `Bottleneck`.
      depths: blocks of each stage.
      width: channels of the first stage, 64 in the standard network.
    """

    def __init__(self, block: type[_Block], depths: tuple[int, ...], width: int = 64):
        super().__init__()
        self.stem_conv = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.stem_bn = nn.BatchNorm2d(width)
        self.blocks, channels = [], width
        for stage, depth in enumerate(depths):
            for index in range(depth):
                stride = 2 if stage > 0 and index == 0 else 1
                name = f"layer{stage + 1}_block{index}"
                self.add_module(name, block(channels, width * 2**stage, stride))
                self.blocks.append(name)
                channels = width * 2**stage * block.expansion
        self.representation_dim = channels

    def forward(self, x):
        """Global average of the last stage."""
        x = torch.relu_(self.stem_bn(self.stem_conv(x)))
        for name in self.blocks:
            x = getattr(self, name)(x)
        return x.mean((2, 3))


def ResNet18(width: int = 64) -> ResNet:
    """Eight basic blocks."""
    return ResNet(BasicBlock, (2, 2, 2, 2), width)


def ResNet50(width: int = 64) -> ResNet:
    """Sixteen bottlenecks."""
    return ResNet(Bottleneck, (3, 4, 6, 3), width)
