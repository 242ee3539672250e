"""Builds an encoder from a config."""

from ml_collections import ConfigDict

from invclr_jax import parallel
from invclr_jax.models import dtypes
from invclr_jax.models.norm import norm_groups
from invclr_jax.models.resnet import ResNet, ResNet10, ResNet18, ResNet34, ResNet50, check_stem

ENCODERS = {
    "resnet10": ResNet10,
    "resnet18": ResNet18,
    "resnet34": ResNet34,
    "resnet50": ResNet50,
}


def build_encoder(
    model: ConfigDict,
    batch_norm: ConfigDict | None = None,
    *,
    image_size: int,
    axis: parallel.Axis = None,
    num_devices: int = 1,
    batch_size: int | None = None,
) -> ResNet:
    """The encoder that a config describes; nonsense is refused before anything is compiled.

    Args:
      model: `name` and `width`; `conv`, `dtype` and `stem` default to `auto`, `float32`, `auto`,
        `remat` to False.
      batch_norm: `scope` and `groups`, see `norm_groups`; None is the scope `global`.
      image_size: shorter side of the images in pixels.
      axis: name of the mapped device axis, None on a single device.
      num_devices: devices along `axis`.
      batch_size: images of the whole batch, to check the groups, if known.

    Returns:
      The module.
    """
    if model.name not in ENCODERS:
        raise ValueError(f"no encoder {model.name!r}: use one of {', '.join(ENCODERS)}")
    scope, groups = ("global", 1) if batch_norm is None else (batch_norm.scope, batch_norm.groups)
    return ENCODERS[model.name](
        width=model.width,
        stem=check_stem(model.get("stem", "auto"), image_size),
        conv=model.get("conv", "auto"),
        dtype=dtypes.parse(model.get("dtype", "float32")),
        axis=axis,
        groups=norm_groups(scope, groups, num_devices, batch_size),
        remat=model.get("remat", False),
    )
