"""What a configuration may hold: sentences for nonsense, before anything compiles."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import ml_collections

from invclr_jax import importing
from invclr_jax.config.values import flatten
from invclr_jax.data.streaming.pictures import ON_ERROR
from invclr_jax.methods import find_method
from invclr_jax.models.build import ENCODERS
from invclr_jax.models.conv import CONVOLUTIONS
from invclr_jax.models.dtypes import DTYPES, PRECISIONS
from invclr_jax.models.norm import SCOPES
from invclr_jax.models.resnet import STEMS
from invclr_jax.objectives.estimators import ESTIMATORS, PAIRS, Finite
from invclr_jax.training.optimizer import MASKS, OPTIMIZERS, RULES
from invclr_jax.training.schedules import SCHEDULES
from invclr_jax.training.writers import TRACKERS
from invclr_jax.transforms.build import TRANSFORMS

_CHOICES: dict[str, Sequence[str]] = {
    "model.stem": STEMS,
    "model.conv": CONVOLUTIONS,
    "model.dtype": DTYPES,
    "model.precision": PRECISIONS,
    "penalty.estimator": tuple(ESTIMATORS),
    "penalty.feature": Finite.features,
    "penalty.pair": PAIRS,
    "optimizer.rule": RULES,
    "optimizer.mask": MASKS,
    "batch_norm.scope": SCOPES,
    "batch_norm.running_variance": ("biased", "unbiased"),
    "transform.variant": ("paper", "authors"),
    "transform.normalise": ("image", "row"),
    "data.stream.on_error": ON_ERROR,
    "log.tracker": ("", *TRACKERS),
}

_CHOICES_OR_PATHS: dict[str, Sequence[str]] = {
    "model.name": tuple(ENCODERS),
    "optimizer.name": tuple(OPTIMIZERS),
    "optimizer.schedule": SCHEDULES,
    "transform.name": tuple(TRANSFORMS),
    "head.name": (),
}
"""Keys that take an import path too; None is decided later."""

# Comparisons are written so that NaN fails them.
_LIMITS = {
    "an integer of at least 0": (
        lambda v: 0 <= v < 2**31,
        (
            *("seed", "data.seed", "eval.every_steps"),
            *("data.stream.workers", "data.stream.statistics"),
        ),
    ),
    "an integer of at least 1": (
        lambda v: 1 <= v < 2**31,
        (
            *("num_epochs", "num_steps", "chunks", "model.width", "model.projection_dim"),
            *("penalty.num_samples", "penalty.every", "batch_norm.groups"),
            *("checkpoint.every_steps", "checkpoint.keep", "log.every_steps", "eval.num_samples"),
            *("data.num_train", "data.num_test", "transform.channels"),
        ),
    ),
    "an integer of at least 2": (
        lambda v: 2 <= v < 2**31,
        (
            *("batch_size", "transform.size", "eval.limit", "views.number", "views.size"),
            "data.stream.size",
        ),
    ),
    "a finite number of at least 0": (
        lambda v: 0 <= v < float("inf"),
        (
            *("penalty.weight", "penalty.ramp_epochs", "transform.strength"),
            *("optimizer.weight_decay", "optimizer.ramp_epochs"),
        ),
    ),
    "a finite number above 0": (
        lambda v: 0 < v < float("inf"),
        (
            *("contrastive.temperature", "penalty.clip", "optimizer.base_learning_rate"),
            *("optimizer.trust_coefficient", "online_probe.learning_rate", "penalty.ridge"),
        ),
    ),
    "a number from 0 to 1": (
        lambda v: 0 <= v <= 1,
        ("transform.jitter_probability", "transform.grey_probability"),
    ),
    "a number from 0 to below 1": (lambda v: 0 <= v < 1, ("optimizer.momentum",)),
    "finite numbers, one for each channel": (
        lambda v: len(v) > 0 and all(isinstance(x, int | float) and abs(x) < 1e9 for x in v),
        ("transform.mean", "transform.std"),
    ),
}


def check_choice(key: str, value: Any, allowed: Sequence[str]) -> None:
    """Refuses a value that is not among those allowed."""
    if value not in allowed:
        raise ValueError(f"config.{key} is {value!r}: use one of {', '.join(allowed)}")


def check(config: ml_collections.ConfigDict, defaults: Mapping[str, Any]) -> None:
    """Refuses nonsense: the error has the key, its value and what is allowed.

    Args:
      config: what to check.
      defaults: the default of every key, flat.
    """
    flat = flatten(config)
    _check_given(config, flat, defaults)
    for key, allowed in _CHOICES.items():
        check_choice(key, flat[key], allowed)
    for key, allowed in _CHOICES_OR_PATHS.items():
        value = flat[key]
        if value is not None and not importing.is_path(value) and value not in allowed:
            names = f"one of {', '.join(allowed)}, or " if allowed else ""
            raise ValueError(
                f"config.{key} is {value!r}: use {names}an import path, package.module:Name"
            )
    for words, (holds, keys) in _LIMITS.items():
        for key in keys:
            if flat[key] is not None and not holds(flat[key]):
                raise ValueError(f"config.{key} is {flat[key]!r}: use {words}")
    method = find_method(config.method)
    if method.losses:
        check_choice("contrastive.loss", config.contrastive.loss, method.losses)
    method.check(config)
    if method.most_views and config.views.number > method.most_views:
        raise ValueError(
            f"config.views.number is {config.views.number}: {config.method} uses "
            f"{method.most_views} views"
        )
    _check_penalty(config)
    _check_chunks(config)
    if config.num_steps is None and config.num_epochs is None:
        raise ValueError("config has neither num_steps nor num_epochs: set one of them")


def _check_given(
    config: ml_collections.ConfigDict, flat: Mapping[str, Any], defaults: Mapping[str, Any]
) -> None:
    """Refuses None for a key that has a default, and values that are not plain."""
    for key, default in defaults.items():
        if flat[key] is None and default is not None:
            raise ValueError(f"config.{key} is None: its default is {default!r}")
    try:
        json.dumps(config.to_dict())
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"config holds a value that is not plain ({error}): use numbers, text, lists and "
            "dictionaries"
        ) from None


def _check_penalty(config: ml_collections.ConfigDict) -> None:
    feature, estimator = config.penalty.feature, config.penalty.estimator
    if feature not in ESTIMATORS[estimator].features:
        raise ValueError(
            f"config.penalty.feature {feature!r} compares pairs and has no derivative in alpha: "
            f"use config.penalty.estimator finite instead of {estimator!r}"
        )


def _check_chunks(config: ml_collections.ConfigDict) -> None:
    """Refuses chunks that would change the statistics of a batch without a word."""
    scope, groups, chunks = config.batch_norm.scope, config.batch_norm.groups, config.chunks
    if chunks == 1 or scope == "per_chunk":
        return
    remedy = (
        "save memory by config.model.remat, which changes nothing else, or accept statistics of "
        "each chunk by config.batch_norm.scope=per_chunk"
    )
    if scope != "groups" or groups % chunks:
        raise ValueError(
            f"config.chunks is {chunks} and batch norm's statistics are those of the {scope} "
            f"batch ({groups} groups), which a chunk does not see: {remedy}"
        )
    if config.penalty.weight and config.penalty.feature != "unit":
        raise ValueError(
            f"config.chunks is {chunks} and the feature {config.penalty.feature!r} has statistics "
            f"of the whole batch: {remedy}"
        )
