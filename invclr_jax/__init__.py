"""Transformation invariance in contrastive representation learning (Foster et al., ICLR 2021).

One idea, `z = f(t(x, alpha, beta))`, and a folder for each part: `data` (x), `transforms` (t),
`models` (f), `objectives` and `methods` (what training minimises), `training`, `evaluation`. This
module is the front door:

    import invclr_jax as ic

    ic.train("spirograph_cpu", "runs/mine")
    encoder = ic.load_encoder("runs/mine")

Its names are imported when they are first used. Importing it imports nothing else and changes
neither the environment nor JAX's configuration.
"""

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from invclr_jax.version import __version__ as __version__

if TYPE_CHECKING:
    from invclr_jax.api import train
    from invclr_jax.checkpoint import Encoder, load_encoder
    from invclr_jax.checkpoint.torch_import import load_torch
    from invclr_jax.config import default_config
    from invclr_jax.config import load as load_config
    from invclr_jax.data import Dataset, Split
    from invclr_jax.data import load as load_data
    from invclr_jax.evaluation.audit.run import audit
    from invclr_jax.evaluation.protocols import evaluate
    from invclr_jax.evaluation.settings import Settings
    from invclr_jax.training import writers
    from invclr_jax.training.adapt import adapt
    from invclr_jax.transforms.base import Box, Compose, frozen

_NAMES = {
    "train": "invclr_jax.api:train",
    "adapt": "invclr_jax.training.adapt:adapt",
    "audit": "invclr_jax.evaluation.audit.run:audit",
    "evaluate": "invclr_jax.evaluation.protocols:evaluate",
    "load_encoder": "invclr_jax.checkpoint:load_encoder",
    "load_torch": "invclr_jax.checkpoint.torch_import:load_torch",
    "Encoder": "invclr_jax.checkpoint:Encoder",
    "Compose": "invclr_jax.transforms.base:Compose",
    "frozen": "invclr_jax.transforms.base:frozen",
    "Box": "invclr_jax.transforms.base:Box",
    "Settings": "invclr_jax.evaluation.settings:Settings",
    "Dataset": "invclr_jax.data:Dataset",
    "Split": "invclr_jax.data:Split",
    "load_data": "invclr_jax.data:load",
    "default_config": "invclr_jax.config:default_config",
    "load_config": "invclr_jax.config:load",
    "writers": "invclr_jax.training.writers",
}

__all__ = [
    "Box",
    "Compose",
    "Dataset",
    "Encoder",
    "Settings",
    "Split",
    "adapt",
    "audit",
    "default_config",
    "evaluate",
    "frozen",
    "load_config",
    "load_data",
    "load_encoder",
    "load_torch",
    "train",
    "writers",
]


class _FrontDoor(types.ModuleType):
    """This module, whose names win over command lines of the same name.

    Importing `invclr_jax.train`, the command line, would otherwise put that module in the place of
    the function `invclr_jax.train`.
    """

    def __getattr__(self, name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, _, attribute = _NAMES[name].partition(":")
        target = importlib.import_module(module)
        value = getattr(target, attribute) if attribute else target
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _NAMES and isinstance(value, types.ModuleType):
            return  # the import system binds a submodule to its parent
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_NAMES})


sys.modules[__name__].__class__ = _FrontDoor
