"""The Spirograph formula over the full grid of points and pixels, in PyTorch."""

import math

import torch

CHUNK = 128
"""Pictures at a time: 21 MB for each step of the formula, where 4096 would take 671 MB."""


def render(
    params: torch.Tensor, *, size: int = 32, num_points: int = 40, floor: float | None = None
) -> torch.Tensor:
    """Draws pictures `[n, size, size, 3]` from params `[n, 10]`.

    Args:
      params: as `invclr_jax.transforms.spirograph.render` takes them.
      size: pixels a side.
      num_points: on the curve.
      floor: smallest exponent, if any. CPU builds of PyTorch are slow on exponentials that
        underflow, as a quarter of these do.
    """
    m, b, h, sigma = params[:, :4, None].unbind(1)
    dtype, device = params.dtype, params.device
    t = torch.linspace(0, 2 * math.pi, num_points, dtype=dtype, device=device)
    x = (m - h) * torch.cos(t) + h * torch.cos((m - h) * t / b)
    y = (m - h) * torch.sin(t) - h * torch.sin((m - h) * t / b)
    centres = torch.linspace(-6, 6, size, dtype=dtype, device=device)
    horizontal = (centres[:, None] - x[:, :, None, None]) ** 2
    vertical = (centres[None, :] - y[:, :, None, None]) ** 2
    exponent = -(horizontal + vertical) / sigma[:, :, None, None]
    if floor is not None:
        exponent = exponent.clamp(min=floor)
    intensity = torch.exp(exponent).mean(1)
    intensity = (intensity / (intensity.amax((1, 2), keepdim=True) + 1e-8))[..., None]
    return intensity * params[:, None, None, 4:7] + (1 - intensity) * params[:, None, None, 7:]


def forward(params: torch.Tensor, floor: float | None) -> torch.Tensor:
    """The pictures of a large batch."""
    with torch.no_grad():
        return torch.cat([render(rows, floor=floor) for rows in params.split(CHUNK)])


def gradient(
    x: torch.Tensor, alpha: torch.Tensor, weights: torch.Tensor, floor: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The pictures, and the derivative of sum(weights · pictures) in alpha.

    Args:
      x: columns (m, b, sigma, f_r).
      alpha: columns (h, f_g, f_b, b_r, b_g, b_b).
      weights: like the pictures.
      floor: see `render`.
    """
    pictures: list[torch.Tensor] = []
    slopes: list[torch.Tensor] = []
    for rows in torch.arange(len(x)).split(CHUNK):
        nuisance = alpha[rows].requires_grad_()
        drawn = render(join(x[rows], nuisance), floor=floor)
        slopes += torch.autograd.grad(drawn, nuisance, weights[rows])
        pictures.append(drawn.detach())
    return torch.cat(pictures), torch.cat(slopes)


def join(x: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """The columns of x and alpha in `render`'s order."""
    return torch.cat([x[:, :2], alpha[:, :1], x[:, 2:], alpha[:, 1:]], 1)
