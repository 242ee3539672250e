"""The transformations on PyTorch tensors, for a whole batch at once.

The authors crop and flip picture by picture on the host; cropping the batch in one `grid_sample` is
kinder to the reference.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from benchmarks.torch_peer.render import join, render

FLOOR = -80.0
"""Smallest exponent of the renderer: without it PyTorch is slower, see `benchmarks.render`."""

ATTEMPTS = 10
GREY = (0.299, 0.587, 0.114)
TO_YIQ = (GREY, (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))
TO_RGB = ((1, 0.956, 0.619), (1, -0.272, -0.647), (1, -1.106, 1.703))


class Spirograph:
    """Renders x under alpha.

    Args:
      size: pixels a side.
    """

    def __init__(self, size: int):
        self.size = size

    def sample_beta(self, x: torch.Tensor) -> None:
        """There is no beta."""

    def apply(self, x: torch.Tensor, alpha: torch.Tensor, beta: Any = None) -> torch.Tensor:
        """Pictures `[n, 3, size, size]` of x `[n, 4]` and alpha `[n, 6]`."""
        return render(join(x, alpha), size=self.size, floor=FLOOR).permute(0, 3, 1, 2)


class Beta(NamedTuple):
    """Crops (top, left, height, width) `[n, 4]` in pixels, and coins `[n]`."""

    boxes: torch.Tensor
    flip: torch.Tensor
    jitter: torch.Tensor
    grey: torch.Tensor


class Images:
    """Crop, flip, colour jitter, grey, normalise.

    Args:
      size: pixels a side, before and after.
      mean: of each channel.
      std: of each channel.
    """

    def __init__(self, size: int, mean: Sequence[float], std: Sequence[float]):
        self.size, self.mean, self.std = size, mean, std

    def sample_beta(self, x: torch.Tensor) -> Beta:
        """Random resized crops (scale 0.08–1, ratio 3/4–4/3) and coins for images x."""
        n, on = len(x), x.device
        coins = torch.rand(3, n, device=on) < torch.tensor([[0.5], [0.8], [0.2]], device=on)
        return Beta(_sample_boxes(n, self.size, on), *coins)

    def apply(self, x: torch.Tensor, alpha: torch.Tensor, beta: Beta) -> torch.Tensor:
        """Views `[n, 3, size, size]` of 8-bit images x `[n, 3, h, w]` under alpha `[n, 4]`."""
        images = crop(x.to(alpha.dtype) / 255, beta.boxes, beta.flip, self.size)
        jittered = jitter(images, alpha)
        images = torch.where(beta.jitter[:, None, None, None], jittered, images)
        images = torch.where(beta.grey[:, None, None, None], _grey(images), images)
        mean, std = (images.new_tensor(v)[:, None, None] for v in (self.mean, self.std))
        return (images - mean) / std


def _sample_boxes(n: int, size: int, device: torch.device) -> torch.Tensor:
    """The first of ten attempts that fits, else the whole picture."""
    area = size**2 * torch.empty(n, ATTEMPTS, device=device).uniform_(0.08, 1)
    log = torch.empty(n, ATTEMPTS, device=device).uniform_(math.log(3 / 4), math.log(4 / 3))
    stretch = torch.exp(log / 2)
    attempts = torch.stack([area.sqrt() / stretch, area.sqrt() * stretch], -1).round()
    fits = ((attempts > 0) & (attempts <= size)).all(-1)
    first = attempts[torch.arange(n, device=device), fits.int().argmax(1)]
    shape = torch.where(fits.any(1, keepdim=True), first, float(size))
    corner = torch.floor(torch.rand(n, 2, device=device) * (size - shape + 1))
    return torch.cat([corner, shape], 1)


def crop(images: torch.Tensor, boxes: torch.Tensor, flip: torch.Tensor, size: int) -> torch.Tensor:
    """Cuts boxes out of `[n, c, h, w]` and enlarges them bilinearly to `size` pixels a side."""
    steps = (torch.arange(size, dtype=images.dtype, device=images.device) + 0.5) / size
    steps = steps.expand(len(images), 2, size)
    steps = torch.stack([steps[:, 0], torch.where(flip[:, None], 1 - steps[:, 1], steps[:, 1])], 1)
    low, length = boxes[:, :2, None], boxes[:, 2:, None]
    # As if the box had been cut out first: no pixel beyond its edge counts.
    centres = torch.minimum(torch.maximum(low + steps * length, low + 0.5), low + length - 0.5)
    room = centres.new_tensor(images.shape[2:])[:, None]
    y, x = (2 * centres / room - 1).unbind(1)
    grid = torch.stack([x[:, None, :].expand(-1, size, -1), y[:, :, None].expand(-1, -1, size)], -1)
    return functional.grid_sample(images, grid, align_corners=False)


def jitter(images: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """Brightness, contrast, saturation and hue of `[n, 3, h, w]` by alpha `[n, 4]`."""
    brightness, contrast, saturation, hue = alpha[:, :, None, None, None].unbind(1)
    images = (images * brightness).clamp(0, 1)
    mean = _grey(images).mean((2, 3), keepdim=True)
    images = (images * contrast + mean * (1 - contrast)).clamp(0, 1)
    images = (images * saturation + _grey(images) * (1 - saturation)).clamp(0, 1)
    return torch.einsum("nij,njhw->nihw", _hue_matrix(hue.flatten()), images).clamp(0, 1)


def _hue_matrix(turns: torch.Tensor) -> torch.Tensor:
    """T_RGB · rotation of (I, Q) · T_YIQ for each of `[n]` turns."""
    cosine, sine = torch.cos(2 * math.pi * turns), torch.sin(2 * math.pi * turns)
    zero, one = torch.zeros_like(turns), torch.ones_like(turns)
    rotation = torch.stack([one, zero, zero, zero, cosine, -sine, zero, sine, cosine], -1)
    return turns.new_tensor(TO_RGB) @ rotation.view(-1, 3, 3) @ turns.new_tensor(TO_YIQ)


def _grey(images: torch.Tensor) -> torch.Tensor:
    weights = images.new_tensor(GREY)[:, None, None]
    return (images * weights).sum(1, keepdim=True)
