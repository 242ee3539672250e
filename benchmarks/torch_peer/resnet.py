"""ResNet-18 in PyTorch with the CIFAR stem, as the authors' encoder: the reference for speed."""

import torch
from torch import nn


class _BasicBlock(nn.Module):
    def __init__(self, channels: int, features: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, features, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(features)
        self.conv2 = nn.Conv2d(features, features, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(features)
        self.shortcut = nn.Sequential()
        if stride > 1 or channels != features:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, features, 1, stride, bias=False), nn.BatchNorm2d(features)
            )

    def forward(self, x):
        residual = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(residual)) + self.shortcut(x))


class ResNet18(nn.Module):
    """Images `[n, 3, h, w]` to representations `[n, 8 * width]`.

    Args:
      width: channels of the first stage, 64 in the standard network.
    """

    def __init__(self, width: int = 64):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        blocks, channels = [], width
        for stage in range(4):
            for index in range(2):
                features = width * 2**stage
                stride = 2 if stage > 0 and index == 0 else 1
                blocks.append(_BasicBlock(channels, features, stride))
                channels = features
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x):
        """Global average of the last stage."""
        return self.blocks(self.stem(x)).mean((2, 3))
