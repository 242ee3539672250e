"""`invclr_jax.transforms.geometry.affine` by kornia's `warp_affine`."""

import math

import torch
from kornia.geometry.transform import warp_affine


def affine(images: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """Bilinear, edge pixels repeated, without antialiasing.

    Args:
      images: `[n, c, h, w]`.
      alpha: as for ours, `[n, 6]`.
    """
    height, width = images.shape[-2:]
    matrix = forward_matrix(alpha, height, width)
    options = {"mode": "bilinear", "padding_mode": "border", "align_corners": True}
    return warp_affine(images, matrix, (height, width), **options)


def forward_matrix(alpha: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """From source to result in pixels (right, down), `[n, 2, 3]`."""
    turns, down, right, log2_scale, shear_down, shear_right = alpha.T
    scale = torch.exp2(log2_scale)
    cos, sin = (scale * f(2 * math.pi * turns) for f in (torch.cos, torch.sin))
    # Columns of R·D·S for (down, right): a step down and a step to the right.
    step_down = 1 + shear_down * shear_right, shear_right
    step_right = shear_down, torch.ones_like(shear_down)
    rr, rd = sin * step_right[0] + cos * step_right[1], sin * step_down[0] + cos * step_down[1]
    dr, dd = cos * step_right[0] - sin * step_right[1], cos * step_down[0] - sin * step_down[1]
    x, y = (width - 1) / 2, (height - 1) / 2
    offset_right = x + right * width - rr * x - rd * y
    offset_down = y + down * height - dr * x - dd * y
    first = torch.stack([rr, rd, offset_right], dim=1)
    return torch.stack([first, torch.stack([dr, dd, offset_down], dim=1)], dim=1)


def gradient(
    images: torch.Tensor, alpha: torch.Tensor, weights: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures, and the gradient in alpha of their weighted sum."""
    alpha = alpha.detach().clone().requires_grad_()
    pictures = affine(images, alpha)
    (pictures * weights).sum().backward()
    assert alpha.grad is not None
    return pictures.detach(), alpha.grad
