"""Configurations as flat dictionaries and as JSON."""

import difflib
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import ml_collections

RESUMABLE = (
    "log",
    "checkpoint",
    "eval",
    "data.path",
    "data.on_device",
    "data.verify",
    "data.download",
    "data.stream.workers",
)
"""Keys (and their children) that may change when a run is resumed: they leave training as it is."""


MATTERS_IF = {
    "penalty.ridge": ("penalty.feature", "canonical"),
    "penalty.pair": ("penalty.estimator", "finite"),
}
"""Keys that change nothing unless another key has a certain value."""


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """`{"model.width": 64, ...}`; `options` of your own classes stay dictionaries."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if not isinstance(value, Mapping | ml_collections.ConfigDict):
            flat[prefix + key] = value
        elif key.endswith("options"):
            flat[prefix + key] = _plain(value)
        else:
            flat |= flatten(value, f"{prefix}{key}.")
    return flat


def _plain(value: Any) -> Any:
    """As JSON would give it back."""
    if isinstance(value, ml_collections.ConfigDict):
        value = value.to_dict()
    return json.loads(json.dumps(value))


def get_key(config: ml_collections.ConfigDict, key: str) -> Any:
    """The value of `model.width`; None where there is no such key."""
    for part in key.split("."):
        config = config.get(part)
        if config is None:
            return None
    return config


def set_key(config: ml_collections.ConfigDict, key: str, value: Any) -> None:
    """Sets `model.width`; a section that does not exist is left alone."""
    *parents, last = key.split(".")
    for part in parents:
        config = config[part]
    config[last] = value


def to_json(config: ml_collections.ConfigDict) -> str:
    """The configuration as readable JSON."""
    return json.dumps(config.to_dict(), indent=1, sort_keys=True)


def fill(config: ml_collections.ConfigDict, values: Mapping[str, Any]) -> ml_collections.ConfigDict:
    """Sets keys; those that the configuration does not have are refused.

    Args:
      config: changed in place.
      values: by flat keys, as `flatten` gives them.
    """
    known = flatten(config)
    for key, value in values.items():
        if key not in known:
            raise ValueError(f"unknown config key {key!r}: {nearest(key, known)}")
        try:
            set_key(config, key, tuple(value) if isinstance(value, list) else value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"config.{key} cannot be {value!r}: {error}") from None
    return config


def read_json(path: str | pathlib.Path) -> dict[str, Any]:
    """The nested values that `to_json` wrote."""
    try:
        values = json.loads(pathlib.Path(path).read_text())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a config: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} is not a config: it holds a {type(values).__name__}")
    return values


def differences(one: ml_collections.ConfigDict, other: ml_collections.ConfigDict) -> list[str]:
    """Sentences for the keys that matter to training and differ between two configurations."""
    a, b = flatten(one), flatten(other)
    return [
        f"{key}: {a.get(key)!r} there, {b.get(key)!r} here"
        for key in sorted(a.keys() | b.keys())
        if a.get(key) != b.get(key) and not _may_change(key) and _matters(key, a, b)
    ]


def _matters(key: str, *flat: Mapping[str, Any]) -> bool:
    other, value = MATTERS_IF.get(key, (None, None))
    return other is None or any(values.get(other) == value for values in flat)


def _may_change(key: str) -> bool:
    return any(key == prefix or key.startswith(prefix + ".") for prefix in RESUMABLE)


def nearest(key: str, known: Mapping[str, Any]) -> str:
    """A hint for a key that is not among the known ones."""
    close = difflib.get_close_matches(key, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"the keys are {', '.join(sorted(known))}"
