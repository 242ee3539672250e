"""The authors' training step in PyTorch: SimCLR, the penalty in reverse mode, LARS."""

import collections
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import ml_collections
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from benchmarks.torch_peer import resnet, vit
from benchmarks.torch_peer.transforms import Images, Spirograph

ENCODERS: dict[str, Callable[[int], Any]] = {
    "resnet18": resnet.ResNet18,
    "resnet50": resnet.ResNet50,
    "vit_tiny": vit.ViTTiny,
}


class Draws(NamedTuple):
    """The random numbers of a step: (alpha, beta) of two views; alpha' `[L, n, a]`, e `[n, d]`."""

    first: tuple[torch.Tensor, Any]
    second: tuple[torch.Tensor, Any]
    alpha_prime: torch.Tensor | None = None
    e: torch.Tensor | None = None


def projection_head(dim: int, output_dim: int) -> nn.Sequential:
    """Dense, batch norm, ReLU, dense, batch norm without affine; no biases."""
    layers = {
        "dense1": nn.Linear(dim, dim, bias=False),
        "bn1": nn.BatchNorm1d(dim),
        "relu": nn.ReLU(),
        "dense2": nn.Linear(dim, output_dim, bias=False),
        "bn2": nn.BatchNorm1d(output_dim, affine=False),
    }
    return nn.Sequential(collections.OrderedDict(layers))


def nt_xent(p: torch.Tensor, q: torch.Tensor, temperature: float) -> torch.Tensor:
    """Each of the 2n projections finds its partner among the others."""
    both = functional.normalize(torch.cat([p, q]))
    scores = both @ both.T / temperature
    scores = scores.masked_fill(torch.eye(len(both), dtype=torch.bool, device=p.device), -torch.inf)
    partners = torch.arange(len(both), device=p.device).roll(len(p))
    return functional.cross_entropy(scores, partners)


def penalty(
    z: torch.Tensor, alpha: torch.Tensor, alpha_prime: torch.Tensor, e: torch.Tensor
) -> torch.Tensor:
    """The paper's estimator: mean over L alpha' of the squared derivative of e·z/|z| along them."""
    projected = (functional.normalize(z) * e).sum()
    (slope,) = torch.autograd.grad(projected, alpha, create_graph=True)
    return (slope * (alpha_prime - alpha.detach())).sum(-1).pow(2).mean()


class LARS:
    """Torchlars' rule: gradients scaled by t·|p|/(|g|+wd·|p|+1e-8), then momentum SGD.

    Args:
      parameters: to train.
      options: `config.optimizer`.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], options: ml_collections.ConfigDict):
        self.parameters, self.options = list(parameters), options
        rate, momentum = options.base_learning_rate, options.momentum
        self.sgd = torch.optim.SGD(self.parameters, rate, momentum)

    @torch.no_grad()
    def step(self) -> None:
        """Updates the parameters by their gradients, which it overwrites."""
        trust, decay = self.options.trust_coefficient, self.options.weight_decay
        for parameter in self.parameters:
            gradient: Any = parameter.grad
            size, slope = parameter.norm(), gradient.norm()
            ratio = trust * size / (slope + decay * size + 1e-8)
            ratio = torch.where((size > 0) & (slope > 0), ratio, 1.0)
            gradient.add_(parameter, alpha=decay).mul_(ratio)
        self.sgd.step()


class Trainer:
    """The whole step: data, views, encoder, penalty, backward pass, update.

    Args:
      config: of our run, resolved; what it says about model, loss, penalty and optimiser holds
        here too, except that the estimator is the paper's. bfloat16 is PyTorch's autocast.
      rows: factors `[N, 4]`, or 8-bit images `[N, h, w, 3]`.
      low: ends of alpha's distribution, `[a]`.
      high: likewise.
      channels_last: the memory format of weights and images.
      encoder: instead of the one that the configuration names.
    """

    def __init__(
        self,
        config: ml_collections.ConfigDict,
        rows: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        *,
        channels_last: bool = False,
        encoder: resnet.ResNet | None = None,
    ):
        use_all_cores()
        self.config = config
        self.layout = torch.channels_last if channels_last else torch.contiguous_format
        self.half = config.model.dtype == "bfloat16"
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        encoder = encoder or ENCODERS[config.model.name](config.model.width)
        head = projection_head(encoder.representation_dim, config.model.projection_dim)
        network: Any = nn.ModuleDict({"encoder": encoder, "head": head})
        self.network = network.to(self.device, memory_format=self.layout)
        self.optimizer = LARS(self.network.parameters(), config.optimizer)
        self.low, self.high = (torch.tensor(v).float().to(self.device) for v in (low, high))
        self.rows, self.transform = _data(config, torch.from_numpy(rows).to(self.device))

    def step(self, penalised: bool) -> float:
        """One update on a random batch; the loss, for which the device is waited."""
        chosen = torch.randint(len(self.rows), (self.config.batch_size,), device=self.device)
        x = self.rows[chosen]
        return self.update(x, self.draw(x, penalised))

    def update(self, x: torch.Tensor, draws: Draws) -> float:
        """One update by given random numbers; the loss before it."""
        loss = self.loss(x, draws)
        self.network.zero_grad()
        # Only the parameters: a plain backward() would also differentiate in alpha.
        loss.backward(inputs=self.optimizer.parameters)
        self.optimizer.step()
        return loss.item()

    def draw(self, x: torch.Tensor, penalised: bool) -> Draws:
        """Random numbers for rows x."""
        n = len(x)
        first, second = ((self._alpha(n), self.transform.sample_beta(x)) for _ in range(2))
        if not penalised:
            return Draws(first, second)
        dim = self.network["encoder"].representation_dim
        e = 2.0 * torch.randint(2, (n, dim), device=self.device) - 1
        return Draws(first, second, self._alpha(self.config.penalty.num_samples, n), e)

    def _alpha(self, *shape: int) -> torch.Tensor:
        uniform = torch.rand(*shape, len(self.low), device=self.device)
        return self.low + (self.high - self.low) * uniform

    def loss(self, x: torch.Tensor, draws: Draws) -> torch.Tensor:
        """Eq. 13 with NT-Xent; one forward pass of view 1 serves loss and penalty."""
        options, (alpha, beta) = self.config.penalty, draws.first
        alpha.requires_grad_(draws.e is not None)
        z, z_prime = self.encode(x, alpha, beta), self.encode(x, *draws.second)
        temperature = self.config.contrastive.temperature
        loss = nt_xent(self.project(z), self.project(z_prime), temperature)
        if draws.e is None or draws.alpha_prime is None:
            return loss
        value = penalty(z, alpha, draws.alpha_prime, draws.e)
        return loss + options.weight * options.every * value.clamp(max=options.clip)

    def encode(self, x: torch.Tensor, alpha: torch.Tensor, beta: Any) -> torch.Tensor:
        """Representations `[n, d]` of one view."""
        images = self.transform.apply(x, alpha, beta)
        with self._precision():
            z = self.network["encoder"](images.contiguous(memory_format=self.layout))
        return self._widened(z)

    def project(self, z: torch.Tensor) -> torch.Tensor:
        """Projections `[n, p]`."""
        with self._precision():
            p = self.network["head"](z)
        return self._widened(p)

    def _widened(self, rows: torch.Tensor) -> torch.Tensor:
        """In float32 what autocast computed in bfloat16."""
        return rows.float() if self.half else rows

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.half)


def use_all_cores() -> None:
    """All cores; on a GPU the precision of products that XLA has by default."""
    torch.set_num_threads(os.cpu_count() or 1)
    if torch.cuda.is_available():
        torch.set_float32_matmul_precision("high")


def _data(config, rows: torch.Tensor) -> tuple[torch.Tensor, Spirograph | Images]:
    options = config.transform
    if rows.ndim == 2:  # factors to render
        return rows, Spirograph(options.size)
    images = rows.permute(0, 3, 1, 2).contiguous()
    return images, Images(options.size, options.mean, options.std)
