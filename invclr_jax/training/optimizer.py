"""Optimisers by name: LARS by three rules, SGD, AdamW and Muon."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import optax.contrib
from jaxtyping import PyTree

from invclr_jax import importing
from invclr_jax.training.schedules import learning_rate as learning_rate
from invclr_jax.training.stacking import by_shape

HOME = "invclr_jax.training"

RULES = ("optax", "torchlars", "clipped")
MASKS = ("none", "batch_norm_and_bias")


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
        afterwards and takes |p|/(|g|+wd·|p|+1e-8) instead of |p|/|g+wd·p|. `clipped` is the
        latter with learning rate times ratio no larger than the learning rate, as solo-learn's
        `clip_lr`; it goes with a trust coefficient of 0.02.
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
    limit = learning_rate if rule == "clipped" else None
    return optax.chain(
        optax.masked(_torchlars_ratio(weight_decay, trust_coefficient, limit), mask),
        optax.trace(momentum),
        optax.scale_by_learning_rate(learning_rate),
    )


def _torchlars_ratio(
    weight_decay, trust_coefficient, limit: optax.ScalarOrSchedule | None = None, eps=1e-8
) -> optax.GradientTransformation:
    """Scales g + wd·p by r = t·|p|/(|g|+wd·|p|+eps), or by 1 where |p| or |g| is zero.

    With a limit, the learning rate, r becomes min(r/limit, 1).
    """

    def scale(g, p, limit):
        p_norm, g_norm = jnp.linalg.norm(p.ravel()), jnp.linalg.norm(g.ravel())
        ratio = trust_coefficient * p_norm / (g_norm + weight_decay * p_norm + eps)
        if limit is not None:  # which ends at zero
            ratio = jnp.where(ratio < limit, ratio / jnp.maximum(limit, eps), 1.0)
        return jnp.where((p_norm > 0) & (g_norm > 0), ratio, 1.0) * (g + weight_decay * p)

    def update(updates, state, params=None):
        now = limit(state.count) if callable(limit) else limit
        scaled = jax.tree.map(lambda g, p: scale(g, p, now), updates, params)
        return scaled, optax.ScaleByScheduleState(optax.safe_increment(state.count))

    if limit is None:
        return optax.stateless(
            lambda updates, params: jax.tree.map(lambda g, p: scale(g, p, None), updates, params)
        )
    init = lambda params: optax.ScaleByScheduleState(jnp.zeros((), jnp.int32))  # noqa: E731
    return optax.GradientTransformation(init, update)


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


def adamw(
    learning_rate: optax.ScalarOrSchedule,
    *,
    weight_decay: float = 1e-4,
    mask: PyTree | Callable | bool = True,
    **options: Any,
) -> optax.GradientTransformation:
    """Adam with decoupled weight decay (arXiv 1711.05101); options of `optax.adamw`."""
    return optax.adamw(learning_rate, weight_decay=weight_decay, mask=mask, **options)


def muon(
    learning_rate: optax.ScalarOrSchedule,
    *,
    weight_decay: float = 0.0,
    mask: PyTree | Callable | bool = True,
    **options: Any,
) -> optax.GradientTransformation:
    """Muon (Jordan, 2024): kernels move by orthogonal matrices, all other parameters by Adam.

    The kernel `[k, k, c, f]` of a convolution is a matrix from its k·k·c inputs to its f outputs.

    Args:
      learning_rate: number, or schedule over steps.
      weight_decay: of kernels.
      mask: which parameters are decayed.
      **options: of `optax.contrib.muon`.
    """

    def matrices(params):
        return jax.tree.map(
            lambda p: (
                optax.contrib.MuonDimensionNumbers(tuple(range(p.ndim - 1)), p.ndim - 1)
                if p.ndim > 1
                else None
            ),
            params,
        )

    return optax.contrib.muon(
        learning_rate,
        weight_decay=weight_decay,
        weight_decay_mask=None if mask is True else mask,
        muon_weight_dimension_numbers=matrices,
        **options,
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


OPTIMIZERS: dict[str, Callable[..., optax.GradientTransformation]] = {
    "lars": lars,
    "sgd": sgd,
    "adamw": adamw,
    "muon": muon,
}


def make_optimizer(options: Any, schedule: optax.Schedule) -> optax.GradientTransformation:
    """The optimiser that `config.optimizer` describes.

    Args:
      options: `name`, one of `OPTIMIZERS`, or the import path of a function such as
        `optax:adamw`, called with the schedule as `learning_rate` and with `options`.
      schedule: the learning rate by step.
    """
    if importing.is_path(options.name):
        arguments = {"learning_rate": schedule, **options.options.to_dict()}
        tx = importing.build(options.name, arguments, home=HOME)
        if not isinstance(tx, optax.GradientTransformation):
            raise ValueError(f"{options.name} gives a {type(tx).__name__}, no optax transformation")
        return tx
    make = OPTIMIZERS[options.name]
    arguments = {"weight_decay": options.weight_decay, "mask": decayed(options.mask)}
    for key in ("momentum", "trust_coefficient", "rule"):
        if key in inspect.signature(make).parameters:
            arguments[key] = options[key]
    try:
        tx = make(schedule, **arguments, **options.options.to_dict())
    except TypeError as error:
        raise ValueError(f"config.optimizer.options do not fit {options.name}: {error}") from None
    return tx if options.name == "muon" else by_shape(tx)  # Muon knows matrices, not stacks
