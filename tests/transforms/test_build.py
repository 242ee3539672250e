"""Transformations from plain options, as a config holds them."""

import jax
import ml_collections
import numpy as np
import pytest

from invclr_jax.transforms import presets
from invclr_jax.transforms.build import TRANSFORMS, build_transform
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.spirograph import SpirographTransform

OPTIONS = {
    "name": "image",
    "size": 8,
    "mean": (0.5, 0.4, 0.3),
    "std": (0.2, 0.2, 0.2),
    "strength": 0.4,
    "variant": "authors",
    "normalise": "row",
    "jitter_probability": 0.7,
    "grey_probability": 0.1,
    "penalised": ("colour", "crop"),
    "options": {"crop_scale": (0.3, 0.9)},
}


def build(**changes):
    return build_transform(ml_collections.ConfigDict(OPTIONS | changes))


def test_every_key_is_read():
    expected = ImageTransform(
        size=8,
        mean=(0.5, 0.4, 0.3),
        std=(0.2, 0.2, 0.2),
        strength=0.4,
        variant="authors",
        jitter_probability=0.7,
        grey_probability=0.1,
        penalised=("colour", "crop"),
        crop_scale=(0.3, 0.9),
    )
    assert build() == expected
    assert build(name="spirograph") == SpirographTransform(size=8, normalise="row")


@pytest.mark.parametrize("name", sorted(set(TRANSFORMS) - {"spirograph"}))
def test_every_name_builds_what_transforms_pictures(name):
    transform = build(name=name, penalised=("colour",), options={})
    images = np.random.default_rng(0).integers(0, 256, (3, 12, 12, 3), dtype=np.uint8)
    changed = transform.apply(images, *transform.sample(jax.random.key(0), 3))
    assert changed.shape == (3, 8, 8, 3)
    assert set(presets.PRESETS) < set(TRANSFORMS)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "blurry"}, "no transform 'blurry': use one of image, spirograph, paper"),
        ({"name": "object:my.Blur"}, "passed as an object, my.Blur, .* as transform="),
        ({"name": "math:sqrt", "options": {}}, "does not take the options"),
        ({"name": "collections:OrderedDict", "options": {}}, "gives a OrderedDict"),
        ({"options": {"corp": True}}, "has 'corp', which ImageTransform does not take"),
    ],
)
def test_nonsense_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        build(**changes)
