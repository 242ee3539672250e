"""What all methods share: modules, random views of a batch, and the penalised first view.

A method is one file: a dataclass made by hand or by `from_config`, which owns its modules, its
state, its loss, its defaults and its checks. Random numbers are drawn for the whole batch from one
key, and each device takes its rows: a run on eight devices sees the same transformations as a run
on one.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from invclr_jax import importing, parallel, randomness
from invclr_jax.methods.views import Batches, Draws
from invclr_jax.models import network
from invclr_jax.objectives.term import Penalty
from invclr_jax.transforms.base import Transform


class Outcome(NamedTuple):
    """What a method's loss hands to the step besides its value.

    Attributes:
      statistics: updated statistics of every module.
      state: updated state of the method.
      representation: z of the first view, `[n, d]`, for the online probe.
      terms: named parts of the loss, for the log.
    """

    statistics: PyTree
    state: PyTree
    representation: Array
    terms: dict[str, Array]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Method:
    """What training minimises, for one encoder and one transformation.

    Subclasses give `loss`, and `init_state` where they keep something from step to step.

    Attributes:
      encoder: f, images to representations `[n, d]`.
      head: g, representations to projections.
      transform: t of the first view, with the distribution of alpha.
      second: t of the second view; None for the same.
      others: t of the third view and further; None for the same.
      num_views: how many views of an image a step sees.
      penalty: the invariance penalty; None for plain learning.
      axis: mapped device axis, None for one device without `pmap`.
      chunks: parts of a device's batch whose activations are alive one at a time.
      total_steps: of the whole run, for schedules; None if unknown.
    """

    encoder: nn.Module
    head: nn.Module
    transform: Transform
    second: Transform | None = None
    others: Transform | None = None
    num_views: int = 2
    penalty: Penalty | None = None
    axis: parallel.Axis = None
    chunks: int = 1
    total_steps: int | None = None

    def __post_init__(self):
        if self.penalty is None or self.transform.alpha.size > 0:
            return
        if not self.penalty.estimator.takes_second_view(object()):
            raise ValueError(
                "the transform has no alpha that a penalty could differentiate in: penalise one "
                "of its parts (config.transform.penalised), compare the views "
                "(config.penalty.estimator=finite, config.penalty.pair=views), or set "
                "config.penalty.weight=0"
            )

    defaults: ClassVar[dict[str, tuple[Any, Any]]] = {
        "contrastive.temperature": (0.5, 0.5),
        "model.projection_dim": (128, 128),
        "optimizer.weight_decay": (1e-6, 1e-6),
        "batch_norm.scope": ("global", "groups"),  # theirs: eight GPUs, each on its own
        "batch_norm.groups": (1, 8),
        "num_epochs": (1000, 1000),
        "views.number": (2, 2),
    }
    """Config keys that are None until the method decides: (paper's value, authors' value)."""

    most_views: ClassVar[int | None] = None
    """The largest `num_views` that it can use; None for any."""

    options: ClassVar[Mapping[str, Any]] = {}
    """The method's own section of the config, `config.<name>`, with its defaults."""

    passes: ClassVar[int] = 6
    """Cost of a step in forward passes of the encoder: two views, and backward is twice forward.
    Each further view adds 3."""

    losses: ClassVar[tuple[str, ...]] = ()
    """Values of `config.contrastive.loss` that it knows."""

    @classmethod
    def check(cls, config: importing.Options) -> None:
        """Refuses nonsense in a config with a ValueError."""

    @classmethod
    def default_head(cls, encoder: nn.Module, output_dim: int) -> nn.Module:
        """The head for an encoder if the user gives none."""
        raise NotImplementedError

    @classmethod
    def section(cls, config: Any) -> dict[str, Any]:
        """The method's section of a config; its defaults if it is named by an import path."""
        return {**cls.options, **dict(config.get(config.method) or {})}

    @classmethod
    def from_config(cls, config: Any, **parts: Any) -> "Method":
        """The method with its settings from a config; `parts` are fields of `Method`."""
        return cls(**parts)

    def loss(
        self,
        params: PyTree,
        statistics: PyTree,
        state: PyTree,
        x: Array,
        *,
        step: Array | int,
        key: PRNGKeyArray,
        penalised: bool,
    ) -> tuple[Float[Array, ""], Outcome]:
        """The loss of this device's share of the batch.

        Args:
          params: of every module, `{"encoder": ..., "head": ...}`.
          statistics: likewise.
          state: what `init_state` made.
          x: what the transform takes, `[n, ...]`.
          step: updates made so far.
          key: of this step.
          penalised: whether the penalty is part of this step.
        """
        raise NotImplementedError

    def init_state(self, params: PyTree, statistics: PyTree, key: PRNGKeyArray) -> PyTree:
        """What the method keeps from step to step; nothing by default."""
        return {}

    @property
    def modules(self) -> dict[str, nn.Module]:
        """What is trained, by name."""
        return {"encoder": self.encoder, "head": self.head}

    def init(self, key: PRNGKeyArray, images: Array) -> tuple[PyTree, PyTree]:
        """Fresh parameters and statistics of every module, each fed with the one before.

        Args:
          key: of the parameters.
          images: an example of what the transform gives, `[n, h, w, c]`.
        """
        params, statistics, inputs = {}, {}, images
        for name, module in self.modules.items():
            own = randomness.stream(key, name)
            params[name], statistics[name], outputs = network.init(module, own, inputs)
            if outputs.ndim != 2 or len(outputs) != len(images):
                raise ValueError(
                    f"the {name} gives shape {outputs.shape} for {len(images)} images: it must "
                    "give [n, d], one vector per image; average over pixels, for example"
                )
            inputs = jnp.zeros(outputs.shape, images.dtype)
        return params, statistics

    def encode(
        self, params: PyTree, statistics: PyTree, images: Array, key: PRNGKeyArray
    ) -> tuple[Float[Array, "n d"], PyTree]:
        """Representations in train mode and the updated statistics of the encoder."""
        return network.train(self.encoder, params["encoder"], statistics["encoder"], images, key)

    def project(
        self, params: PyTree, statistics: PyTree, z: Array, key: PRNGKeyArray
    ) -> tuple[Float[Array, "n p"], PyTree]:
        """Projections in train mode and the updated statistics of the head."""
        return network.train(self.head, params["head"], statistics["head"], z, key)

    def view(
        self,
        params: PyTree,
        statistics: PyTree,
        x: Array,
        transformation: Any,
        key: PRNGKeyArray,
        transform: Transform | None = None,
    ) -> tuple[Float[Array, "n d"], PyTree]:
        """Representation z = f(t(x, alpha, beta)) and the encoder's updated statistics."""
        alpha, beta = transformation
        images = (transform or self.transform).apply(x, alpha, beta)
        return self.encode(params, statistics, images, key)

    def draw(self, key: PRNGKeyArray, x: Array, penalised: bool) -> Draws:
        """Random numbers for this device's images."""
        first, second, noise = jax.random.split(key, 3)
        total = len(x) * parallel.axis_size(self.axis)
        draws = Draws(
            first=self.transform.sample(first, total),
            second=(self.second or self.transform).sample(second, total),
            noise=self._noise(noise, total, x) if penalised and self.penalty else None,
            others=self._draw_others(randomness.stream(key, "others"), total),
        )
        return parallel.local_rows(draws, self.axis)

    def _draw_others(self, key: PRNGKeyArray, total: int) -> Any:
        count = self.num_views - 2
        if not count:
            return None
        drawn = (self.others or self.transform).sample(key, total * count)
        return jax.tree.map(lambda leaf: leaf.reshape(total, count, *leaf.shape[1:]), drawn)

    def _noise(self, key: PRNGKeyArray, n: int, x: Array) -> Any:
        assert self.penalty is not None
        one = jax.eval_shape(lambda: self.transform.apply(x[:1], *self.transform.sample(key, 1)))
        dim = network.output_dim(network.on_one_device(self.encoder), one)
        return self.penalty.estimator.draw(key, n, box=self.transform.alpha, dim=dim)

    def penalised_view(
        self,
        params: PyTree,
        statistics: PyTree,
        x: Array,
        draws: Draws,
        key: PRNGKeyArray,
        second: Array | None = None,
    ) -> tuple[Float[Array, ""], Float[Array, "n d"], PyTree]:
        """The penalty at the first view, beside what `view` gives; one forward pass serves both.

        Without noise (plain learning, or a step that `penalty.every` leaves out) it is zero.

        Args:
          params: of every module.
          statistics: likewise.
          x: what the transform takes, `[n, ...]`.
          draws: of `draw`.
          key: of dropout.
          second: z of the second view by the same encoder, if the method has it.
        """
        alpha, beta = draws.first
        if draws.noise is None or self.penalty is None:
            z, statistics = self.view(params, statistics, x, draws.first, key)
            return jnp.zeros((), z.dtype), z, statistics

        def represent(alpha):
            return self.view(params, statistics, x, (alpha, beta), key)

        z_prime = None
        if self.penalty.estimator.takes_second_view(beta):
            z_prime = second
            if z_prime is None:
                z_prime, _ = self.view(params, statistics, x, draws.second, key, self.second)
        box = self.transform.alpha
        return self.penalty(represent, alpha, draws.noise, box=box, axis=self.axis, z_prime=z_prime)

    def represent_views(
        self, params: PyTree, statistics: PyTree, rows: tuple[Array, Draws], key: PRNGKeyArray
    ) -> tuple[Batches, Array, PyTree]:
        """Representations of all views, the penalty and the encoder's updated statistics.

        Args:
          params: of every module.
          statistics: likewise.
          rows: x and what `draw` gave for it.
          key: of dropout.
        """
        x, draws = rows
        keys = jax.random.split(key, 4)
        # The second view comes first because penalties of pairs can reuse it.
        z_prime, encoder = self.view(params, statistics, x, draws.second, keys[0], self.second)
        statistics = statistics | {"encoder": encoder}
        penalty, z, encoder = self.penalised_view(params, statistics, x, draws, keys[1], z_prime)
        if draws.others is None:
            return (z, z_prime), penalty, encoder
        count = self.num_views - 2
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), draws.others)
        x, other_key = x.repeat(count, axis=0), randomness.stream(key, "others")
        statistics = statistics | {"encoder": encoder}
        others, encoder = self.view(params, statistics, x, flat, other_key, self.others)
        return (z, z_prime, others), penalty, encoder

    def project_views(
        self, params: PyTree, statistics: PyTree, rows: tuple[Array, Draws], key: PRNGKeyArray
    ) -> tuple[tuple[Batches, Array], tuple[Array, PyTree]]:
        """Projections of all views and z of the first; the penalty and updated statistics.

        Made for `map_chunks`; arguments as of `represent_views`.
        """
        batches, penalty, encoder = self.represent_views(params, statistics, rows, key)
        keys = (*jax.random.split(key, 4)[2:], randomness.stream(key, "other projections"))
        projected, head = self.run("head", params, statistics, batches, keys)
        updated = statistics | {"encoder": encoder, "head": head}
        return (projected, batches[0]), (penalty, updated)

    def run(
        self,
        name: str,
        params: PyTree,
        statistics: PyTree,
        batches: Batches,
        keys: Sequence[PRNGKeyArray],
    ) -> tuple[Batches, PyTree]:
        """A module's outputs for each batch by itself, and its updated statistics."""
        module, kept, outputs = self.modules[name], statistics[name], []
        for rows, key in zip(batches, keys, strict=False):
            output, kept = network.train(module, params[name], kept, rows, key)
            outputs.append(output)
        return tuple(outputs), kept

    def add_penalty(
        self, name: str, loss: Array, value: Array, step: Array | int, penalised: bool
    ) -> tuple[Array, dict[str, Array]]:
        """The loss with the penalty's term, and both by name for the log."""
        if not penalised or self.penalty is None:
            return loss, {name: loss}
        term, mean = self.penalty.term(value, step, self.axis)
        return loss + term, {name: loss, "penalty": mean}
