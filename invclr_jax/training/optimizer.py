"""LARS by either rule, SGD, and the learning-rate schedule."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from invclr_jax import importing
from invclr_jax.training.stacking import by_shape

HOME = "invclr_jax.training"

RULES = ("optax", "torchlars")
MASKS = ("none", "batch_norm_and_bias")


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


def lars(
    learning_rate: optax.ScalarOrSchedule,
    *,
    momentum: float = 0.9,
    weight_decay: float = 1e-6,
    trust_coefficient: float = 0.001,
    rule: str = "optax",
    mask: PyTree | Callable | bool = True,
) -> optax.GradientTransformation:
    """LARS (You et al., 2017).

    Args:
      learning_rate: number, or schedule over steps.
      momentum: decay of the momentum buffer.
      weight_decay: coefficient of the parameters added to the gradient.
      trust_coefficient: the step's length relative to the parameter's norm.
      rule: `optax` puts the learning rate inside the momentum buffer; `torchlars` multiplies by it
        afterwards and takes |p|/(|g|+wd·|p|+1e-8) instead of |p|/|g+wd·p|.
      mask: which parameters are adapted and decayed, as in `optax.masked`; the others get plain
        momentum SGD. The paper masks nothing.
    """
    if rule not in RULES:
        raise ValueError(f"unknown LARS rule {rule!r}: use one of {', '.join(RULES)}")
    if rule == "optax":
        return optax.lars(
            learning_rate,
            weight_decay,
            weight_decay_mask=mask,
            trust_coefficient=trust_coefficient,
            trust_ratio_mask=mask,
            momentum=momentum,
        )
    return optax.chain(
        optax.masked(_torchlars_ratio(weight_decay, trust_coefficient), mask),
        optax.trace(momentum),
        optax.scale_by_learning_rate(learning_rate),
    )


def _torchlars_ratio(weight_decay, trust_coefficient, eps=1e-8) -> optax.GradientTransformation:
    """Scales g + wd·p by t·|p|/(|g|+wd·|p|+eps), or by 1 where |p| or |g| is zero."""

    def scale(g, p):
        p_norm, g_norm = jnp.linalg.norm(p.ravel()), jnp.linalg.norm(g.ravel())
        ratio = trust_coefficient * p_norm / (g_norm + weight_decay * p_norm + eps)
        return jnp.where((p_norm > 0) & (g_norm > 0), ratio, 1.0) * (g + weight_decay * p)

    return optax.stateless(lambda updates, params: jax.tree.map(scale, updates, params))


def sgd(
    learning_rate: optax.ScalarOrSchedule,
    *,
    momentum: float = 0.9,
    weight_decay: float = 1e-4,
    mask: PyTree | Callable | bool = True,
) -> optax.GradientTransformation:
    """Momentum SGD with weight decay added to the gradient, as MoCo v2 trains."""
    return optax.chain(
        optax.add_decayed_weights(weight_decay, mask=mask), optax.sgd(learning_rate, momentum)
    )


def decayed(mask: str) -> Callable[[PyTree], PyTree] | bool:
    """Which parameters are adapted and decayed, by name of the mask.

    Args:
      mask: `none` for all of them (the paper's), `batch_norm_and_bias` to leave those out.
    """
    if mask not in MASKS:
        raise ValueError(f"unknown optimizer mask {mask!r}: use one of {', '.join(MASKS)}")
    # Kernels of convolutions and dense layers are the only parameters with two axes or more.
    return True if mask == "none" else lambda params: jax.tree.map(lambda p: p.ndim > 1, params)


OPTIMIZERS = {"lars": lars, "sgd": sgd}


def make_schedule(options: Any, *, steps_per_epoch: int, total_steps: int) -> optax.Schedule:
    """The learning rate by step that `config.optimizer` describes.

    Args:
      options: `schedule`, which is `step` or `epoch` for the paper's cosine under a ramp
        (`base_learning_rate`, `ramp_epochs`), or the import path of a function that returns an
        optax schedule, called with `schedule_options`.
      steps_per_epoch: steps in an epoch.
      total_steps: of the whole run.
    """
    if importing.is_path(options.schedule):
        return importing.build(options.schedule, options.schedule_options.to_dict(), home=HOME)
    by_epoch = learning_rate(
        options.base_learning_rate, total_steps / steps_per_epoch, options.ramp_epochs
    )
    return step_schedule(by_epoch, steps_per_epoch, options.schedule)


def make_optimizer(options: Any, schedule: optax.Schedule) -> optax.GradientTransformation:
    """The optimiser that `config.optimizer` describes.

    Args:
      options: `name`, which is `lars` or `sgd`, or the import path of a function such as
        `optax:adamw`, called with the schedule as `learning_rate` and with `options`.
      schedule: the learning rate by step.
    """
    if importing.is_path(options.name):
        arguments = {"learning_rate": schedule, **options.options.to_dict()}
        tx = importing.build(options.name, arguments, home=HOME)
        if not isinstance(tx, optax.GradientTransformation):
            raise ValueError(f"{options.name} gives a {type(tx).__name__}, no optax transformation")
        return tx
    common = {
        "momentum": options.momentum,
        "weight_decay": options.weight_decay,
        "mask": decayed(options.mask),
    }
    if options.name == "lars":
        common |= {"trust_coefficient": options.trust_coefficient, "rule": options.rule}
    return by_shape(OPTIMIZERS[options.name](schedule, **common))
