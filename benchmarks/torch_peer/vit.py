"""ViT-Tiny in PyTorch, as `invclr_jax.models.vit` describes it: the reference for speed."""

import torch
from torch import nn
from torch.nn import functional

from invclr_jax.models.vit import positions


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)); modules have the names of our parameters."""

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (nn.LayerNorm(dim, 1e-6) for _ in range(2))
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp1, self.mlp2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens `[n, t, d]`."""
        n, count, dim = x.shape
        split = self.qkv(self.norm1(x)).reshape(n, count, 3, self.heads, -1)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, count, dim))
        return x + self.mlp2(functional.gelu(self.mlp1(self.norm2(x))))


class ViTTiny(nn.Module):
    """Images `[n, 3, h, w]` to representations `[n, d]`: the mean of all patches.

    Args:
      width: components of a head.
      size: side of a picture.
      heads: attention heads.
      depth: blocks.
      patch: side of a patch.
    """

    def __init__(
        self, width: int = 64, size: int = 32, heads: int = 3, depth: int = 12, patch: int = 4
    ):
        super().__init__()
        dim = heads * width
        self.representation_dim = dim
        self.embed = nn.Conv2d(3, dim, patch, patch)
        places = torch.from_numpy(positions(size // patch, size // patch, dim)).float()
        self.register_buffer("places", places, persistent=False)
        self.blocks = nn.Sequential(*(Block(dim, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim, 1e-6)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The mean over patches after the last norm."""
        x = self.embed(images).flatten(2).transpose(1, 2)
        return self.norm(self.blocks(x + self.places)).mean(1)
