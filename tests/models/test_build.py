"""Encoders from configs."""

import jax.numpy as jnp
import pytest
from ml_collections import ConfigDict

from invclr_jax.models.build import build_encoder, on_devices
from invclr_jax.models.resnet import Bottleneck


def test_every_field_is_read():
    model = ConfigDict(
        {"name": "resnet50", "width": 16, "conv": "xla", "dtype": "bfloat16", "remat": True}
    )
    batch_norm = {"scope": "groups", "groups": 4, "running_variance": "unbiased"}
    encoder = build_encoder(model, image_size=96)
    encoder = on_devices(encoder, batch_norm, axis="devices", num_devices=2, batch_size=8)
    assert encoder.block is Bottleneck
    assert encoder.representation_dim == 512
    assert (encoder.width, encoder.stem, encoder.conv) == (16, "standard", "xla")
    assert (encoder.axis, encoder.groups, encoder.remat) == ("devices", 4, True)
    assert encoder.unbiased
    assert encoder.dtype == jnp.bfloat16


@pytest.mark.parametrize(("size", "patch"), [(32, 4), (224, 16)])
def test_patches_fit_the_pictures(size, patch):
    model = {"name": "vit_small", "width": 8, "conv": "xla", "options": {"pool": "token"}}
    encoder = build_encoder(model, image_size=size)
    assert (encoder.heads, encoder.width, encoder.patch, encoder.pool) == (6, 8, patch, "token")
    model["options"]["patch"] = 8
    assert build_encoder(model, image_size=size).patch == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "vgg"}, "no encoder 'vgg': use one of resnet9, resnet10, resnet18"),
        ({"name": "resnet9", "remat": True}, "resnet9 cannot recompute its blocks"),
        ({"name": "vit_tiny", "options": {"axis": "x"}}, "vit_tiny has no option axis: it has de"),
        ({"dtype": "float16"}, "dtype 'float16' is unknown"),
        ({"dtype": "float64"}, "float64 needs JAX_ENABLE_X64=1"),
        ({"stem": "standard"}, "64 pixels or more, got 32"),
    ],
)
def test_nonsense_is_refused(change, message):
    model = ConfigDict({"name": "resnet18", "width": 64} | change)
    with pytest.raises(ValueError, match=message):
        build_encoder(model, image_size=32)
