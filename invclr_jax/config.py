"""The configuration: every key with the paper's value, what `fidelity` decides, and the checks.

A key that is None is decided later: by `fidelity` (see `FIDELITY`) or by the data set (picture
size, channel statistics). `resolve` fills in the former and refuses nonsense before anything
compiles.
"""

import difflib
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import ml_collections
from ml_collections import config_dict

from invclr_jax.models.build import ENCODERS
from invclr_jax.models.conv import METHODS
from invclr_jax.models.dtypes import DTYPES
from invclr_jax.models.norm import SCOPES
from invclr_jax.models.resnet import STEMS
from invclr_jax.objectives.penalty import ESTIMATORS, FEATURES, PAIR_LOSSES
from invclr_jax.training.optimizer import MASKS, RULES

FIDELITY = {
    # method: {key: (paper's value, authors' value)}
    "simclr": {
        "contrastive.loss": ("info_nce", "nt_xent"),
        "contrastive.temperature": (0.5, 0.5),
        "transform.variant": ("paper", "authors"),
        "transform.normalise": ("image", "row"),
        "optimizer.rule": ("optax", "torchlars"),
        "optimizer.schedule": ("step", "epoch"),
        "optimizer.weight_decay": (1e-6, 1e-6),
        "batch_norm.scope": ("global", "groups"),  # theirs: eight GPUs, each on its own
        "batch_norm.groups": (1, 8),
        "moco.shuffle": (False, False),
        "num_epochs": (1000, 1000),
    },
}
FIDELITY["moco"] = FIDELITY["simclr"] | {
    "contrastive.loss": ("moco", "moco"),
    "contrastive.temperature": (0.2, 0.5),
    "optimizer.weight_decay": (1e-4, 1e-6),
    "batch_norm.scope": ("groups", "groups"),
    "batch_norm.groups": (8, 8),
    "moco.shuffle": (True, False),
    "num_epochs": (200, 100),
}

RESUMABLE = (
    "log",
    "checkpoint",
    "eval",
    "data.path",
    "data.on_device",
    "data.verify",
    "data.download",
)
"""Keys (and their children) that may change when a run is resumed: they leave training as it is."""


def default_config() -> ml_collections.ConfigDict:
    """Every key of the project with the paper's CIFAR value (appendix, tables 4 to 6)."""
    later = config_dict.placeholder  # a typed None; each key needs its own
    config = ml_collections.ConfigDict()
    config.seed = 0
    config.fidelity = "paper"  # or "authors": see FIDELITY for what it flips
    config.method = "simclr"  # or "moco"
    config.batch_size = 512  # over all devices
    config.num_epochs = later(int)
    config.num_steps = later(int)  # instead of num_epochs
    config.chunks = 1  # parts of a device's batch; activations of one are alive at a time
    config.model = dict(
        name="resnet50", width=64, stem="auto", conv="auto", dtype="float32", projection_dim=128
    )
    config.contrastive = dict(loss=later(str), temperature=later(float))
    config.penalty = dict(
        weight=0.1,  # lambda; 0 is plain contrastive learning
        clip=1.0,
        estimator="sampled",
        feature="unit",
        num_samples=100,  # L
        every=1,  # apply it each n-th step with n times the weight
        ramp_epochs=0.0,  # lambda grows from 0 over so many epochs
        ridge=0.01,  # of the feature canonical
        pair="alpha",  # of finite: "alpha" keeps beta; "views" takes the second view as it is
        canonical=0.0,  # weight of canonical beside another penalty, on the second view
    )
    config.optimizer = dict(
        name="lars",
        base_learning_rate=3.0,
        ramp_epochs=10.0,
        schedule=later(str),  # changes every "step" or "epoch"
        momentum=0.9,
        weight_decay=later(float),
        trust_coefficient=0.001,
        rule=later(str),  # "optax" or "torchlars"
        mask="none",  # or "batch_norm_and_bias": those are neither adapted nor decayed
    )
    config.moco = dict(queue_size=2048, momentum=0.99, shuffle=later(bool))
    config.batch_norm = dict(
        scope=later(str), groups=later(int)
    )  # "global", "per_device" or "groups"
    config.data = dict(
        name="cifar10",
        path=later(str),
        on_device=later(bool),  # None: when it fits
        verify=True,  # checksums of official archives
        download=False,  # fetch a missing CIFAR
        seed=0,  # of Spirograph's factors
        num_train=100_000,  # Spirograph only
        num_test=20_000,
    )
    config.transform = dict(
        strength=0.5,
        variant=later(str),  # of the colour jitter: "paper" or "authors"
        normalise=later(str),  # of Spirograph's intensity: "image" or "row"
        jitter_probability=0.8,
        grey_probability=0.2,
        size=later(int),  # picture size the encoder sees; None: the data's, 32 for Spirograph
        mean=later(tuple),  # channel statistics; None: the data's
        std=later(tuple),
    )
    config.online_probe = dict(enabled=False, learning_rate=0.1)
    config.checkpoint = dict(every_steps=1000, keep=3)
    config.log = dict(every_steps=50, tensorboard=True)
    config.eval = dict(
        every_steps=0,  # evaluate while training; 0 for never
        protocol="invariance",  # names of invclr_jax.evaluate, comma separated
        num_samples=10,  # M of the protocol average
        limit=5000,  # training and test rows to use
    )
    config.lock()
    return config


def resolve(config: ml_collections.ConfigDict) -> ml_collections.ConfigDict:
    """A checked copy in which every key that `fidelity` decides has its value."""
    config = config.copy_and_resolve_references()
    _choice("fidelity", config.fidelity, ("paper", "authors"))
    _choice("method", config.method, tuple(FIDELITY))
    for key, values in FIDELITY[config.method].items():
        if _get(config, key) is None:
            _set(config, key, values[config.fidelity == "authors"])
    check(config)
    return config


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """`{"model.width": 64, ...}`."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict | ml_collections.ConfigDict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def to_json(config: ml_collections.ConfigDict) -> str:
    """The configuration as readable JSON."""
    return json.dumps(config.to_dict(), indent=1, sort_keys=True)


def from_dict(values: dict[str, Any]) -> ml_collections.ConfigDict:
    """Rebuilds a configuration; keys that the project does not know are refused."""
    config, known = default_config(), flatten(default_config())
    for key, value in flatten(values).items():
        if key not in known:
            raise ValueError(f"unknown config key {key!r}: {nearest(key, known)}")
        try:
            _set(config, key, tuple(value) if isinstance(value, list) else value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"config.{key} cannot be {value!r}: {error}") from None
    return config


def read(path: str | pathlib.Path) -> ml_collections.ConfigDict:
    """Reads what `to_json` wrote."""
    try:
        values = json.loads(pathlib.Path(path).read_text())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a config: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} is not a config: it holds a {type(values).__name__}")
    return from_dict(values)


def differences(one: ml_collections.ConfigDict, other: ml_collections.ConfigDict) -> list[str]:
    """Sentences for the keys that matter to training and differ between two configurations."""
    a, b = flatten(one), flatten(other)
    return [
        f"{key}: {a.get(key)!r} there, {b.get(key)!r} here"
        for key in sorted(a.keys() | b.keys())
        if a.get(key) != b.get(key) and not _may_change(key)
    ]


def _may_change(key: str) -> bool:
    return any(key == prefix or key.startswith(prefix + ".") for prefix in RESUMABLE)


def _get(config, key: str):
    for part in key.split("."):
        config = config[part]
    return config


def _set(config, key: str, value) -> None:
    *parents, last = key.split(".")
    for part in parents:
        config = config[part]
    config[last] = value


def nearest(key: str, known: Mapping[str, Any]) -> str:
    """A hint for a key that is not among the known ones."""
    close = difflib.get_close_matches(key, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"the keys are {', '.join(sorted(known))}"


def _choice(key: str, value, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"config.{key} is {value!r}: use one of {', '.join(allowed)}")


_CHOICES = {
    "model.name": tuple(ENCODERS),
    "model.stem": STEMS,
    "model.conv": METHODS,
    "model.dtype": DTYPES,
    "penalty.estimator": ESTIMATORS,
    "penalty.feature": (*FEATURES, *PAIR_LOSSES),
    "penalty.pair": ("alpha", "views"),
    "optimizer.name": ("lars", "sgd"),
    "optimizer.schedule": ("step", "epoch"),
    "optimizer.rule": RULES,
    "optimizer.mask": MASKS,
    "batch_norm.scope": SCOPES,
    "transform.variant": ("paper", "authors"),
    "transform.normalise": ("image", "row"),
}

# Comparisons are written so that NaN fails them.
_LIMITS = {
    "a whole number of at least 0": (
        lambda v: 0 <= v < 2**31,
        ("seed", "data.seed", "eval.every_steps"),
    ),
    "a whole number of at least 1": (
        lambda v: 1 <= v < 2**31,
        (
            *("num_epochs", "num_steps", "chunks", "model.width", "model.projection_dim"),
            *("penalty.num_samples", "penalty.every", "moco.queue_size", "batch_norm.groups"),
            *("checkpoint.every_steps", "checkpoint.keep", "log.every_steps", "eval.num_samples"),
            *("data.num_train", "data.num_test"),
        ),
    ),
    "a whole number of at least 2": (
        lambda v: 2 <= v < 2**31,
        ("batch_size", "transform.size", "eval.limit"),
    ),
    "a finite number of at least 0": (
        lambda v: 0 <= v < float("inf"),
        (
            *("penalty.weight", "penalty.ramp_epochs", "penalty.canonical", "transform.strength"),
            *("optimizer.weight_decay", "optimizer.ramp_epochs"),
        ),
    ),
    "a finite number above 0": (
        lambda v: 0 < v < float("inf"),
        (
            *("contrastive.temperature", "penalty.clip", "optimizer.base_learning_rate"),
            "penalty.ridge",
            *("optimizer.trust_coefficient", "online_probe.learning_rate"),
        ),
    ),
    "a number from 0 to 1": (
        lambda v: 0 <= v <= 1,
        ("moco.momentum", "transform.jitter_probability", "transform.grey_probability"),
    ),
    "a number from 0 to below 1": (lambda v: 0 <= v < 1, ("optimizer.momentum",)),
    "three finite numbers": (
        lambda v: len(v) == 3 and all(isinstance(x, int | float) and abs(x) < 1e9 for x in v),
        ("transform.mean", "transform.std"),
    ),
}


def check(config: ml_collections.ConfigDict) -> None:
    """Refuses nonsense with a sentence: the key, its value, what is allowed."""
    flat = flatten(config)
    for key, default in flatten(default_config()).items():
        if flat[key] is None and default is not None:
            raise ValueError(f"config.{key} is None: its default is {default!r}")
    for key, allowed in _CHOICES.items():
        _choice(key, flat[key], allowed)
    for words, (holds, keys) in _LIMITS.items():
        for key in keys:
            if flat[key] is not None and not holds(flat[key]):
                raise ValueError(f"config.{key} is {flat[key]!r}: use {words}")
    losses = ("moco",) if config.method == "moco" else ("info_nce", "nt_xent")
    _choice("contrastive.loss", config.contrastive.loss, losses)
    _check_pairs(config)
    _check_sizes(config)


def _check_pairs(config) -> None:
    options = config.penalty
    if options.feature in PAIR_LOSSES and options.estimator != "finite":
        raise ValueError(
            f"config.penalty.feature {options.feature!r} compares pairs and has no derivative in "
            f"alpha: use config.penalty.estimator finite instead of {options.estimator!r}"
        )
    if config.method == "moco" and (options.pair == "views" or options.canonical):
        raise ValueError(
            "config.method moco encodes the second view by its key encoder: "
            "use config.penalty.pair alpha and config.penalty.canonical 0"
        )


def _check_sizes(config) -> None:
    size, queue = config.batch_size, config.moco.queue_size
    if config.method == "moco" and queue % size:
        fitting = [n for n in range(1, queue + 1) if queue % n == 0]
        nearest = sorted(sorted(fitting, key=lambda n: abs(n - size))[:2], reverse=True)
        raise ValueError(
            f"batch size {size} does not divide the queue length {queue}: "
            f"use {' or '.join(map(str, nearest))}"
        )
    if config.num_steps is None and config.num_epochs is None:
        raise ValueError("config has neither num_steps nor num_epochs: set one of them")
