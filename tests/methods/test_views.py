"""Several views: their draws, their order, their transforms and sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax import config as configuration
from invclr_jax.config.build import Own
from invclr_jax.methods.views import mean_over_directions, mean_over_pairs, separate
from invclr_jax.transforms.image import ImageTransform
from tests.own import Shade
from tests.training.small import rows, small_config, small_data, small_recipe

KEY = jax.random.key(4)


def method_for(**options):
    return small_recipe(small_config("cifar10", **options)).method


def test_views_of_an_image_stand_side_by_side():
    first, second = jnp.zeros((3, 2)), jnp.ones((3, 2))
    others = jnp.arange(12.0).reshape(6, 2)  # images 0, 0, 1, 1, 2, 2
    views = separate((first, second, others))
    assert len(views) == 4
    np.testing.assert_array_equal(views[2], others[::2])
    np.testing.assert_array_equal(views[3], others[1::2])
    assert len(separate((first, second))) == 2


def test_pairs_and_directions():
    seen = []

    def loss(a, b):
        seen.append((int(a), int(b)))
        return jnp.float32(len(seen))

    views = [jnp.asarray(i) for i in range(4)]
    assert mean_over_pairs(loss, views) == 3
    assert seen == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    seen.clear()
    assert mean_over_directions(loss, views[:3], views[:2]) == 2.5
    assert seen == [(0, 1), (1, 0), (2, 0), (2, 1)]


def test_more_views_leave_the_first_two_as_they_were():
    x = jnp.asarray(rows("cifar10")["image"][:6])
    two, five = (method_for(**{"views.number": n}).draw(KEY, x, True) for n in (2, 5))
    assert two.others is None
    for name in ("first", "second", "noise"):
        jax.tree.map(np.testing.assert_array_equal, getattr(two, name), getattr(five, name))
    alpha, beta = five.others
    assert alpha.shape == (6, 3, 4)
    assert beta.flip.shape == (6, 3)
    assert len(np.unique(alpha[..., 0])) == 18


def test_transforms_and_sizes_of_views():
    config = small_config("cifar10", **{"views.number": 3, "views.size": 4})
    config.views.second_options = {"strength": 0.25, "options": {"crop_scale": (0.5, 1.0)}}
    method = small_recipe(configuration.resolve(config)).method
    assert isinstance(method.second, ImageTransform)
    assert (method.second.strength, method.second.crop_scale) == (0.25, (0.5, 1.0))
    assert (method.transform.strength, method.transform.size) == (0.5, 8)
    assert (method.others.size, method.others.strength) == (4, 0.5)
    x = jnp.asarray(rows("cifar10")["image"][:2])
    draws = method.draw(KEY, x, False)
    width = method.second.alpha.high[0] - 1
    assert np.abs(draws.second[0][:, 0] - 1).max() <= width < 0.25


def test_a_preset_is_a_transform_by_name():
    method = method_for(**{"transform.name": "byol_first", "penalty.weight": 0.0})
    x = jnp.asarray(rows("cifar10")["image"][:2])
    images = method.transform.apply(x, *method.draw(KEY, x, False).first)
    assert images.shape == (2, 8, 8, 3)
    assert len(method.transform.transforms) == 3  # crop and colour, blur, normalise


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"views.number": 1}, r"config.views.number is 1: use an integer of at least 2"),
        ({"method": "moco", "views.number": 3}, "views.number is 3: moco uses 2 views"),
    ],
)
def test_numbers_that_do_not_fit(options, words):
    with pytest.raises(ValueError, match=words):
        small_config("cifar10", **options)


def test_an_own_transform_is_not_changed_behind_your_back():
    config, dataset, own = small_config("cifar10"), small_data("cifar10"), Own(transform=Shade())
    config.views.size = 4
    config = configuration.describe(config, dataset, own)
    with pytest.raises(ValueError, match="the transform was passed as an object: leave views"):
        configuration.from_config(config, dataset, own, axis=None)
