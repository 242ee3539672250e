"""Builds encoders and heads from plain options."""

import dataclasses

import flax.linen as nn

from invclr_jax import importing, parallel
from invclr_jax.models import dtypes, network
from invclr_jax.models.norm import norm_groups
from invclr_jax.models.resnet import (
    SMALLEST_STANDARD,
    ResNet10,
    ResNet18,
    ResNet34,
    ResNet50,
    check_stem,
)
from invclr_jax.models.resnet9 import ResNet9
from invclr_jax.models.vit import ViTSmall, ViTTiny

ENCODERS: dict[str, type[nn.Module]] = {
    "resnet9": ResNet9,
    "resnet10": ResNet10,
    "resnet18": ResNet18,
    "resnet34": ResNet34,
    "resnet50": ResNet50,
    "vit_tiny": ViTTiny,
    "vit_small": ViTSmall,
}
HOME = "invclr_jax.models"
_PLACE = {"parent", "name", "axis", "groups", "unbiased"}
"""Fields that are not a user's to choose."""


def build_encoder(
    model: importing.Options, *, image_size: int, trust: importing.Trust = None
) -> nn.Module:
    """The encoder that a config describes; nonsense is refused before anything is compiled.

    Args:
      model: `name`, one of `ENCODERS` with those of `width`, `stem`, `conv`, `dtype`,
        `precision` and `remat` that it has, or the import path of a module of one's own;
        `options`, its other fields.
      image_size: shorter side of the images in pixels.
      trust: packages that an import path may be in; None for any.

    Returns:
      The module for one device; see `on_devices`.
    """
    name = model["name"]
    if importing.is_path(name):
        return build_module(name, model.get("options", {}), "encoder", trust)
    if name not in ENCODERS:
        raise ValueError(
            f"no encoder {name!r}: use one of {', '.join(ENCODERS)}, or the import path of your "
            "own, package.module:Name"
        )
    kind = ENCODERS[name]
    known = {field.name for field in dataclasses.fields(kind)} - _PLACE
    values = {
        "width": model["width"],
        "conv": model.get("conv", "auto"),
        "dtype": dtypes.parse(model.get("dtype", "float32")),
        "precision": model.get("precision", "default"),
        "remat": model.get("remat", False),
        "patch": 4 if image_size < SMALLEST_STANDARD else 16,
    }
    if "stem" in known:
        values["stem"] = check_stem(model.get("stem", "auto"), image_size)
    if values["remat"] and "remat" not in known:
        raise ValueError(f"the encoder {name} cannot recompute its blocks: use remat=False")
    options = dict(model.get("options", {}))
    if unknown := options.keys() - known:
        raise ValueError(
            f"the encoder {name} has no option {', '.join(sorted(unknown))}: it has "
            f"{', '.join(sorted(known))}"
        )
    return kind(**{key: value for key, value in values.items() if key in known} | options)


def build_module(
    name: str, options: importing.Options, what: str, trust: importing.Trust = None
) -> nn.Module:
    """A module by import path.

    Args:
      name: `package.module:Name` of a module, or of a function that makes one.
      options: its arguments, plain values.
      what: `encoder` or `head`, for the sentence if it is neither.
      trust: packages that the path may be in; None for any.
    """
    if name.startswith(importing.UNNAMED):
        raise ValueError(
            f"the {what} was passed as an object, {name.removeprefix(importing.UNNAMED)}, and "
            f"cannot be made again from its name: pass it again, as "
            f"{'module=' if what == 'encoder' else what + '='}"
        )
    module = importing.build(name, options, home=HOME, trust=trust)
    if not isinstance(module, nn.Module):
        raise ValueError(
            f"{name} gives a {type(module).__name__}: the {what} must be a Flax module"
        )
    return module


def on_devices(
    module: nn.Module,
    batch_norm: importing.Options,
    *,
    axis: parallel.Axis,
    num_devices: int,
    batch_size: int,
) -> nn.Module:
    """The module as it trains on several devices: batch norm knows its groups.

    Args:
      module: made for one device.
      batch_norm: `scope` and `groups`, see `norm_groups`; `running_variance`.
      axis: name of the mapped device axis, None on a single device.
      num_devices: devices along `axis`.
      batch_size: images that are normalised together at most, to check the groups.
    """
    groups = norm_groups(batch_norm["scope"], batch_norm["groups"], num_devices, batch_size)
    unbiased = batch_norm["running_variance"] == "unbiased"
    return network.spread(module, axis=axis, groups=groups, unbiased=unbiased)
