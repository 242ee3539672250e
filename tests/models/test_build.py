"""Encoders from configs."""

import jax.numpy as jnp
import pytest
from ml_collections import ConfigDict

from invclr_jax.models.build import build_encoder
from invclr_jax.models.resnet import Bottleneck


def test_every_field_is_read():
    model = ConfigDict(
        {"name": "resnet50", "width": 16, "conv": "xla", "dtype": "bfloat16", "remat": True}
    )
    batch_norm = ConfigDict({"scope": "groups", "groups": 4})
    encoder = build_encoder(model, batch_norm, image_size=96, axis="devices", num_devices=2)
    assert encoder.block is Bottleneck
    assert encoder.representation_dim == 512
    assert (encoder.width, encoder.stem, encoder.conv) == (16, "standard", "xla")
    assert (encoder.axis, encoder.groups, encoder.remat) == ("devices", 4, True)
    assert encoder.dtype == jnp.bfloat16


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "vgg"}, "no encoder 'vgg': use one of resnet10, resnet18, resnet34, resnet50"),
        ({"dtype": "float16"}, "dtype 'float16' is unknown"),
        ({"dtype": "float64"}, "float64 needs JAX_ENABLE_X64=1"),
        ({"stem": "standard"}, "64 pixels or more, got 32"),
    ],
)
def test_nonsense_is_refused(change, message):
    model = ConfigDict({"name": "resnet18", "width": 64} | change)
    with pytest.raises(ValueError, match=message):
        build_encoder(model, image_size=32)
