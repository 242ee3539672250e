"""Configs that come with the package, by name."""

import importlib
import pathlib
import pkgutil

import ml_collections

PACKAGE = "invclr_jax.configs"


def _folder() -> pathlib.Path:
    return pathlib.Path(importlib.import_module(PACKAGE).__path__[0])


def names() -> tuple[str, ...]:
    """Names of the shipped configs."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules([str(_folder())])))


def find(name: str) -> pathlib.Path:
    """The file of a shipped config."""
    if name not in names():
        raise ValueError(f"no config {name!r}: use one of {', '.join(names())}, or a file")
    return _folder() / f"{name}.py"


def load(name: str) -> ml_collections.ConfigDict:
    """A shipped config by name, with the word after a colon as its argument.

    Args:
      name: `cifar10`, or `moco_cifar100:resnet50`.
    """
    name, _, argument = name.partition(":")
    find(name)
    module = importlib.import_module(f"{PACKAGE}.{name}")
    return module.get_config(argument) if argument else module.get_config()
