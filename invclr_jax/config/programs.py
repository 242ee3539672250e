"""What of a run its compiled programs depend on, so that a later run can use them."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import ml_collections

from invclr_jax import data, importing
from invclr_jax.config.build import Own
from invclr_jax.config.values import flatten
from invclr_jax.training.state import Recipe

WITHOUT_EFFECT = ("seed", "data", "checkpoint", "log", "eval")
"""Sections that change no program; shapes of the data are compared for themselves."""

_PACKAGE = "invclr_jax"
_KNOWN = {_PACKAGE, "builtins", "flax", "functools", "jax", "jaxlib", "numpy", "optax"}


def dependencies(
    config: ml_collections.ConfigDict, dataset: data.Dataset, recipe: Recipe, own: Own
) -> dict[str, Any] | None:
    """All of a run that its programs depend on, as plain JSON values.

    None where a part is the user's own: nobody can tell when its code has changed.

    Args:
      config: resolved and described.
      dataset: the data.
      recipe: made from them.
      own: the user's objects.
    """
    parts = {name: part for name, part in vars(own).items() if name != "dataset"}
    if any(part is not None for part in parts.values()):
        return None
    if not set(_origins(recipe.method)) <= _KNOWN:
        return None
    flat = {key: value for key, value in flatten(config).items() if _has_effect(key)}
    if any(map(_is_foreign, _texts(flat))):
        return None
    split, classes = dataset.train, dataset.num_classes
    shapes = [split.images.shape, None if split.labels is None else split.labels.shape]
    return {"config": flat, "shapes": shapes, "classes": classes}


def _has_effect(key: str) -> bool:
    return key.partition(".")[0] not in WITHOUT_EFFECT


def _texts(value: Any) -> Iterator[str]:
    """All strings in nested plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _is_foreign(text: str) -> bool:
    """Whether a name is the import path of something outside this package."""
    return importing.is_path(text) and not text.startswith((f"{_PACKAGE}.", f"{_PACKAGE}:"))


def _origins(thing: Any) -> Iterator[str]:
    """The packages of an object and of all that it consists of, as far as dataclasses tell."""
    module = getattr(thing, "__module__", None) or type(thing).__module__
    yield module.partition(".")[0]
    parts: Iterable[Any] = ()
    if dataclasses.is_dataclass(thing):
        parts = [getattr(thing, field.name, None) for field in dataclasses.fields(thing)]
    elif isinstance(thing, Mapping):
        parts = thing.values()
    elif isinstance(thing, list | tuple):
        parts = thing
    for part in parts:
        yield from _origins(part)
