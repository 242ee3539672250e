"""Checkpoints whose configuration names code that their reader has not asked for."""

import contextlib
import itertools
import json
import pathlib
import shutil
import sys

import jax
import numpy as np
from jaxtyping import PyTree

from experiments.reliability import tiny
from invclr_jax.checkpoint import Checkpoints, load_encoder

SECTIONS = ("model", "transform")
NAMES = (
    "evil:Net",
    "evil.deeper:Net",
    "os:system",
    "builtins:eval",
    "subprocess:check_call",
    "invclr_jax.files:write_atomically",
    "invclr_jax.modelsevil:Net",
    "invclr_jax.models.library:logging.sys",
    "..evil:Net",
    "",
    "evil",
    "resnet10; import evil",
    "__import__('evil')",
)
NESTED = "invclr_jax.transforms.base:Compose"
"""A part of ours that is made of others, so that a name can hide in its options."""


def imports(folder: pathlib.Path) -> dict:
    """Loads the checkpoint of a tiny run with other names in its configuration.

    Each must be refused by a sentence, nothing named `evil` may be imported, though such a module
    lies in the workdir and on Python's path, and no file may appear.
    """
    workdir = folder / "imports"
    tiny.finish(workdir, num_steps=3)
    with contextlib.closing(Checkpoints(workdir)) as checkpoints:
        config = checkpoints.config(3)
    variables = jax.device_get(load_encoder(workdir).variables)
    figures: dict = {"tried": 0, "survived": 0, "lost": 0, "failures": []}
    for section, name, nested in itertools.product(SECTIONS, NAMES, (False, True)):
        if nested and section == "model":
            continue
        hostile = json.loads(json.dumps(config))
        hostile[section] |= _named(name, nested, folder / "harm")
        survived = _refused(variables, hostile, folder)
        figures["tried"] += 1
        figures["survived" if survived else "lost"] += 1
        if not survived:
            figures["failures"].append(f"{section} {name}{' nested' * nested}")
    return figures


def _named(name: str, nested: bool, mark: pathlib.Path) -> dict:
    options = {"command": f"touch {mark}"}
    if not nested:
        return {"name": name, "options": options}
    return {"name": NESTED, "options": {"transforms": [{"import": name, "options": options}]}}


def _refused(variables: PyTree, config: dict, folder: pathlib.Path) -> bool:
    place = folder / "hostile"
    shutil.rmtree(place, ignore_errors=True)
    with contextlib.closing(Checkpoints(place, keep=1)) as checkpoints:
        checkpoints.save(3, variables, {"step": np.int32(3)}, config)
    (place / "evil.py").write_text(f"open({str(folder / 'harm')!r}, 'w').close()")
    sys.path.insert(0, str(place))
    try:
        load_encoder(place)
    except ValueError as error:
        said = bool(str(error))
    except Exception:
        said = False
    else:
        said = False
    finally:
        sys.path.remove(str(place))
    return said and "evil" not in sys.modules and not (folder / "harm").exists()
