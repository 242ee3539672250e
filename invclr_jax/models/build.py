"""Builds encoders and heads from plain options."""

import flax.linen as nn

from invclr_jax import importing, parallel
from invclr_jax.models import dtypes, network
from invclr_jax.models.norm import norm_groups
from invclr_jax.models.resnet import ResNet10, ResNet18, ResNet34, ResNet50, check_stem

ENCODERS: dict[str, type[nn.Module]] = {
    "resnet10": ResNet10,
    "resnet18": ResNet18,
    "resnet34": ResNet34,
    "resnet50": ResNet50,
}
HOME = "invclr_jax.models"


def build_encoder(
    model: importing.Options, *, image_size: int, trust: importing.Trust = None
) -> nn.Module:
    """The encoder that a config describes; nonsense is refused before anything is compiled.

    Args:
      model: `name`, one of `ENCODERS` with `width`, `stem`, `conv`, `dtype` and `remat`, or the
        import path of a module of one's own with `options`.
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
    return ENCODERS[name](
        width=model["width"],
        stem=check_stem(model.get("stem", "auto"), image_size),
        conv=model.get("conv", "auto"),
        dtype=dtypes.parse(model.get("dtype", "float32")),
        remat=model.get("remat", False),
    )


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
