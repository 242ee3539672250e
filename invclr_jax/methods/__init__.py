"""Self-supervised methods, one file each. Your own method needs no line here: name it by its
import path, `config.method = "my_lab.method:Mine"`."""

from invclr_jax import importing
from invclr_jax.methods.barlow_twins import BarlowTwins
from invclr_jax.methods.base import Method
from invclr_jax.methods.byol import BYOL
from invclr_jax.methods.emp import EMP
from invclr_jax.methods.moco import MoCo
from invclr_jax.methods.moco_v3 import MoCoV3
from invclr_jax.methods.simclr import SimCLR
from invclr_jax.methods.simsiam import SimSiam
from invclr_jax.methods.vicreg import VICReg

METHODS: dict[str, type[Method]] = {
    "simclr": SimCLR,
    "moco": MoCo,
    "byol": BYOL,
    "simsiam": SimSiam,
    "barlow_twins": BarlowTwins,
    "vicreg": VICReg,
    "moco_v3": MoCoV3,
    "emp": EMP,
}


def find_method(name: str) -> type[Method]:
    """The class of a method, by its name or import path."""
    if importing.is_path(name):
        found = importing.find(name, home=__name__)
        if not (isinstance(found, type) and issubclass(found, Method)):
            raise ValueError(f"{name} is not a subclass of invclr_jax.methods.base.Method")
        return found
    if name not in METHODS:
        raise ValueError(
            f"config.method is {name!r}: use one of {', '.join(METHODS)}, or the import path of "
            "your own, package.module:Name"
        )
    return METHODS[name]
