"""Learning-rate schedules by name: the paper's cosine under a ramp, and one after a warm-up."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from invclr_jax import importing

HOME = "invclr_jax.training"
SCHEDULES = ("step", "epoch", "warmup_cosine")


def learning_rate(
    base: float, total_epochs: float, ramp_epochs: float = 10
) -> Callable[[float | Array], Float[Array, ""]]:
    """Cosine annealing under a linear ramp: min(base·(1+cos(π e/T))/2, base·(1+e)/ramp).

    Args:
      base: the largest learning rate.
      total_epochs: T, where the learning rate reaches zero.
      ramp_epochs: epochs until the ramp allows `base`; 0 for no ramp.

    Returns:
      Function from the epoch (a float: 2.5 is the middle of the third) to the learning rate.
    """
    if not (base > 0 and total_epochs > 0 and ramp_epochs >= 0):
        raise ValueError(
            "learning_rate needs base > 0, total_epochs > 0 and ramp_epochs >= 0, got "
            f"base={base}, total_epochs={total_epochs}, ramp_epochs={ramp_epochs}"
        )

    def schedule(epoch):
        cosine = base * (1 + jnp.cos(jnp.pi * jnp.minimum(epoch / total_epochs, 1.0))) / 2
        return jnp.minimum(cosine, base * (1 + epoch) / ramp_epochs) if ramp_epochs else cosine

    return schedule


def warmup_cosine(
    base: float, *, warmup_steps: int, total_steps: int, end: float = 0.0
) -> optax.Schedule:
    """A straight line from 0 to `base`, then half a cosine down to `end`.

    Args:
      base: the largest learning rate.
      warmup_steps: where it is reached.
      total_steps: where `end` is reached; the schedule stays there.
      end: the last learning rate.
    """
    if not (base > 0 and 0 <= warmup_steps < total_steps and 0 <= end <= base):
        raise ValueError(
            "warmup_cosine needs base > 0, 0 <= warmup_steps < total_steps and 0 <= end <= base, "
            f"got base={base}, warmup_steps={warmup_steps}, total_steps={total_steps}, end={end}"
        )
    return optax.warmup_cosine_decay_schedule(0.0, base, warmup_steps, total_steps, end)


def step_schedule(
    by_epoch: Callable, steps_per_epoch: int, granularity: str = "step"
) -> optax.Schedule:
    """Turns a schedule over epochs into one over steps.

    Args:
      by_epoch: function of the epoch.
      steps_per_epoch: steps in an epoch.
      granularity: `step` for a smooth schedule, `epoch` to change it once an epoch, as the
        authors do.
    """
    if granularity not in ("step", "epoch"):
        raise ValueError(f"schedule changes every 'step' or 'epoch', got {granularity!r}")

    def schedule(step):
        epoch = step / steps_per_epoch
        return by_epoch(jnp.floor(epoch) if granularity == "epoch" else epoch)

    return schedule


def make_schedule(options: Any, *, steps_per_epoch: int, total_steps: int) -> optax.Schedule:
    """The learning rate by step that `config.optimizer` describes.

    Args:
      options: `schedule`, which is `step` or `epoch` for the paper's cosine under a ramp
        (`base_learning_rate`, `ramp_epochs`), `warmup_cosine` with `schedule_options`
        (`warmup_steps`, `end`), or the import path of a function that returns an optax schedule,
        called with `schedule_options`.
      steps_per_epoch: steps in an epoch.
      total_steps: of the whole run.
    """
    if importing.is_path(options.schedule):
        return importing.build(options.schedule, options.schedule_options.to_dict(), home=HOME)
    if options.schedule == "warmup_cosine":
        own = {"warmup_steps": 0, **options.schedule_options.to_dict()}
        return warmup_cosine(options.base_learning_rate, total_steps=total_steps, **own)
    by_epoch = learning_rate(
        options.base_learning_rate, total_steps / steps_per_epoch, options.ramp_epochs
    )
    return step_schedule(by_epoch, steps_per_epoch, options.schedule)
