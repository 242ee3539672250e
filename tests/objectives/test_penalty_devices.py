"""Eight devices give what one gives: values, z and gradients of every estimator and feature."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax.objectives import penalty
from invclr_jax.objectives.features import FEATURES
from invclr_jax.parallel import AXIS, local_rows, mean_over_devices, shard_rows
from tests.objectives.cases import Tiny, quick_jit
from tests.reference import relative_error

TINY = Tiny(batch_norm=True, k=16, a=2)
WAYS = (*penalty.ESTIMATORS, "given")  # `given`: finite with the second view's z


def losses(params, x, alpha, key, feature, axis):
    """Each penalty with its gradient, and z; the clip is on the mean over devices."""

    def loss(params, way):
        represent = lambda alpha: (TINY.represent(params, x, alpha, axis), None)  # noqa: E731
        estimator = "finite" if way == "given" else way
        make = penalty.make_estimator(estimator, num_samples=3)
        noise = local_rows(make.draw(key, 16, box=TINY.box, dim=5), axis)
        z_prime = represent(alpha + 0.1)[0] if way == "given" else None
        # A clip below the value cuts the gradient on every device.
        clip = 1e-9 if way == "moments" else 1e9
        term = penalty.Penalty(weight=1.0, estimator=make, feature=feature, clip=clip)
        options = {"box": TINY.box, "axis": axis, "z_prime": z_prime}
        value, z, _ = term(represent, alpha, noise, **options)
        return term.term(value, 0, axis)[0], z

    results = {way: jax.value_and_grad(loss, has_aux=True)(params, way) for way in WAYS}
    values = {way: value for way, ((value, _), _) in results.items()}
    gradients = {way: gradient for way, (_, gradient) in results.items()}
    z = jnp.stack([z for (_, z), _ in results.values()], axis=1)
    return *mean_over_devices((values, gradients), axis), z


@pytest.mark.parametrize("feature", FEATURES)
def test_eight_devices_equal_one(x64, feature):
    key = jax.random.key(0)
    arguments = TINY.params, TINY.x, TINY.alpha
    one = quick_jit(functools.partial(losses, key=key, feature=feature, axis=None))(*arguments)
    eight = jax.pmap(
        functools.partial(losses, key=key, feature=feature, axis=AXIS),
        axis_name=AXIS,
        in_axes=(None, 0, 0),
    )(TINY.params, *shard_rows((TINY.x, TINY.alpha), 8))
    for way in WAYS:
        assert relative_error(eight[0][way], np.full(8, one[0][way])) < 1e-11, way
        for name in TINY.params:
            error = relative_error(eight[1][way][name][3], one[1][way][name])
            assert error < 1e-10, f"{way} {name}: {error}"
    assert relative_error(eight[2].reshape(one[2].shape), one[2]) < 1e-12
