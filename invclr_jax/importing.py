"""Objects by name, `package.module:Name` with plain options, and back.

A configuration may name any class or function by its import path. A checkpoint is data, not code:
what it names is imported only if it belongs to this package or the caller trusts it, and a class of
this package only if it is of the kind that is asked for. Nothing is imported before that is known.
"""

import dataclasses
import difflib
import importlib
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import ml_collections
import numpy as np

Trust = Sequence[str] | None
"""Packages whose names may be imported; None for all, safe only for your own configurations."""

Options: TypeAlias = Mapping[str, Any] | ml_collections.ConfigDict
"""Plain options by name."""

UNNAMED = "object:"
"""Starts the name of an object that cannot be made again from a name and options."""

_PATH = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*:[A-Za-z]\w*", re.ASCII)
_NESTED = {"import", "options"}


class UntrustedError(ValueError):
    """A name that the caller has not allowed to be imported."""


@dataclasses.dataclass(frozen=True)
class Description:
    """How to make an object again.

    Attributes:
      name: its class, `package.module:Name`.
      options: arguments of the class, plain JSON values; objects among them are described by
        `{"import": name, "options": options}`.
    """

    name: str
    options: dict[str, Any]


def is_path(name: str) -> bool:
    """Whether a name is an import path rather than one of a registry."""
    return ":" in name


def build(name: str, options: Options, *, home: str, trust: Trust = None) -> Any:
    """Imports what a name says and calls it with the options.

    Args:
      name: `package.module:Name` of a class or function.
      options: its keyword arguments, as `Description` has them.
      home: the part of this package whose classes need no trust, such as `invclr_jax.models`.
      trust: see `Trust`.
    """
    make = find(name, home=home, trust=trust)
    arguments = {key: _decoded(value, home, trust) for key, value in options.items()}
    try:
        inspect.signature(make).bind(**arguments)
    except TypeError as error:
        raise ValueError(f"{name} does not take the options {sorted(arguments)}: {error}") from None
    except ValueError:  # some built-in functions have no signature
        pass
    return make(**arguments)


def find(name: str, *, home: str, trust: Trust = None) -> Any:
    """The object that a name says; arguments as of `build`."""
    if name.startswith(UNNAMED):
        raise ValueError(f"{name.removeprefix(UNNAMED)} was passed as an object and has no name")
    if not _PATH.fullmatch(name):
        raise ValueError(f"{name!r} is not an import path: write package.module:Name")
    module_name, _, attribute = name.partition(":")
    own = _within(module_name, home)
    if not (own or trust is None or any(_within(module_name, package) for package in trust)):
        top = module_name.partition(".")[0]
        raise UntrustedError(
            f"{name} is code outside {home}, so nothing was imported: if you trust it, pass "
            f'trust=("{top}",) or --trust={top}'
        )
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ValueError(
            f"{module_name} of {name} cannot be imported ({error}): install it or put its folder "
            "on PYTHONPATH"
        ) from error
    try:
        target = getattr(module, attribute)
    except AttributeError:
        close = difflib.get_close_matches(attribute, vars(module), n=1)
        hint = f": did you mean {close[0]}?" if close else ""
        raise ValueError(f"{module_name} has no {attribute}{hint}") from None
    if not callable(target):
        raise ValueError(f"{name} is a {type(target).__name__}: name a class or a function")
    if own and trust is not None and not _is_class_of(target, home):
        raise UntrustedError(f"{name} is not a class of {home}: only those need no trust")
    return target


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def _is_class_of(target: Any, home: str) -> bool:
    return inspect.isclass(target) and _within(target.__module__, home)


def _decoded(value: Any, home: str, trust: Trust) -> Any:
    if isinstance(value, ml_collections.ConfigDict):
        value = value.to_dict()
    if isinstance(value, Mapping):
        if set(value) == _NESTED:
            return build(value["import"], value["options"], home=home, trust=trust)
        return {key: _decoded(item, home, trust) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_decoded(item, home, trust) for item in value)
    return value


def describe(thing: Any) -> Description | None:
    """How to make an object again, or None where a name and plain options cannot tell.

    Every argument of its class must be an attribute with a plain value, or one that can be
    described in turn.
    """
    kind = type(thing)
    if not _is_importable(kind):
        return None
    try:
        options = {key: _plain(value) for key, value in _arguments(thing).items()}
    except (_NotPlainError, AttributeError):
        return None
    return Description(f"{kind.__module__}:{kind.__qualname__}", options)


def name_of(thing: Any) -> str:
    """The name to record for an object that cannot be described."""
    kind = thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing)
    return f"{UNNAMED}{kind.__module__}.{kind.__qualname__}"


class _NotPlainError(Exception):
    """A value that JSON cannot hold."""


def _is_importable(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    path = f"{kind.__module__}:{kind.__qualname__}"
    return (
        kind.__module__ not in ("__main__", "builtins")
        and _PATH.fullmatch(path) is not None
        and getattr(module, kind.__qualname__, None) is kind
    )


def _arguments(thing: Any) -> dict[str, Any]:
    """The arguments that would make it, without those at their defaults."""
    found = {}
    for parameter in inspect.signature(type(thing)).parameters.values():
        if parameter.name in ("parent", "name") and hasattr(thing, "setup"):
            continue  # of every Flax module: its place in another one
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            if vars(thing):
                raise _NotPlainError
            continue
        value = getattr(thing, parameter.name)
        if value is not parameter.default:
            found[parameter.name] = value
    return found


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(item) for key, item in value.items()}
    if callable(value) and isinstance(getattr(value, "dtype", None), np.dtype):
        return value.dtype.name  # jnp.bfloat16 and its like
    described = describe(value)
    if described is None:
        raise _NotPlainError
    return {"import": described.name, "options": described.options}
