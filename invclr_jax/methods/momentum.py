"""Targets by a slow copy of the network: BYOL and MoCo v3 on top of `Predicting`."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from invclr_jax.methods.chunks import map_chunks
from invclr_jax.methods.predicting import Predicting

COPIED = ("encoder", "head")


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Momentum(Predicting):
    """Predicts projections of a network that follows the trained one.

    The slow network normalises by its batch's statistics, as the trained one does.

    Attributes:
      momentum: weight of the slow network in its update, at the start.
      final_momentum: at the end, along half a cosine; equal to `momentum` for a constant one.
    """

    momentum: float = 0.99
    final_momentum: float = 1.0

    passes: ClassVar = 8  # two views with gradient, two without
    options: ClassVar = {"momentum": 0.99, "final_momentum": 1.0, "predictor_hidden": 4096}

    def __post_init__(self):
        for name in ("momentum", "final_momentum"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ValueError(f"{name} is {value!r}: use a number from 0 to 1")
        if self.total_steps is None and self.momentum != self.final_momentum:
            raise ValueError(
                f"momentum goes from {self.momentum} to {self.final_momentum} over the run: give "
                "total_steps, or the same number for both"
            )

    @classmethod
    def from_config(cls, config, **parts):
        """Reads the method's section of the config."""
        options = cls.section(config)
        predictor = cls.default_predictor(options.pop("predictor_hidden"), parts["encoder"])
        return cls(**{"predictor": predictor, **cls.settings(config), **options, **parts})

    @classmethod
    def settings(cls, config: Any) -> dict[str, Any]:
        """Further fields that a config decides."""
        return {}

    def init_state(self, params, statistics, key):
        """A copy of encoder and head."""
        copy = lambda tree: {name: jax.tree.map(jnp.copy, tree[name]) for name in COPIED}  # noqa: E731
        return {"params": copy(params), "statistics": copy(statistics)}

    def targets(self, params, state, x, draws, projected, *, step, key):
        """Projections by the slow network, which is first moved by the update before this one.

        The published order is: step, then move. Moving at the start of the next step gives the
        same targets in every step.
        """
        online = jax.lax.stop_gradient({name: params[name] for name in COPIED})
        rate = self.rate(jnp.maximum(step - 1, 0))
        slow = momentum_update(state["params"], online, rate)
        kept = state["statistics"]

        def project(rows):
            x, first, second = rows
            z_prime, encoder = self.view(slow, kept, x, second, key, self.second)
            z, encoder = self.view(slow, kept | {"encoder": encoder}, x, first, key)
            both, head = self.run("head", slow, kept, (z, z_prime), (key, key))
            return both, {"encoder": encoder, "head": head}

        rows = (x, draws.first, draws.second)
        targets, kept = map_chunks(project, rows, self.chunks)
        return targets, {"params": slow, "statistics": kept}

    def rate(self, step: Array | int) -> Float[Array, ""]:
        """The momentum of the update after `step`, from `momentum` to `final_momentum`."""
        share = jnp.minimum(jnp.asarray(step, float) / (self.total_steps or 1), 1.0)
        gap = self.final_momentum - self.momentum
        return self.final_momentum - gap * (1 + jnp.cos(jnp.pi * share)) / 2


def momentum_update(slow: PyTree, params: PyTree, momentum: float | Array) -> PyTree:
    """slow ← m·slow + (1-m)·params."""

    def move(old, new):
        return (momentum * old + (1 - momentum) * new).astype(old.dtype)

    return jax.tree.map(move, slow, params)
