"""Each method's objective and state against its definition, from the modules' outputs in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from invclr_jax import config as configuration
from invclr_jax.config.build import Own
from invclr_jax.models import network
from invclr_jax.training.step import create_state
from tests.objectives.test_coding_rate import numpy_emp
from tests.objectives.test_redundancy import numpy_barlow, numpy_vicreg
from tests.own import PlainNet
from tests.training.small import rows, small_config, small_data

VIEWS = 3
DATA = "cifar10"
PAIRS = ((0, 1), (0, 2), (1, 2))
DIRECTIONS = ((0, 1), (1, 0), (2, 0), (2, 1))
"""(prediction, target)."""


def units(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def cosine(p, z):
    return np.mean(np.sum(units(p) * units(z), axis=1))


def info_nce(p, q, temperature):
    scores = units(p) @ units(q).T / temperature
    return np.mean(np.log(np.exp(scores).sum(1)) - np.diagonal(scores))


def over_pairs(loss):
    return lambda views, *_: np.mean([loss(views[i], views[j]) for i, j in PAIRS])


def over_directions(loss):
    return lambda _, predicted, targets: np.mean(
        [loss(predicted[i], targets[j]) for i, j in DIRECTIONS]
    )


def byol(p, t):
    return 2 * (2 - 2 * cosine(p, t))  # both directions, were there two views


OBJECTIVES = {
    "simclr": over_pairs(lambda a, b: info_nce(a, b, 0.5)),
    "byol": over_directions(byol),
    "simsiam": over_directions(lambda p, z: -cosine(p, z)),
    "moco_v3": over_directions(lambda p, t: 2 * 2 * 0.2 * info_nce(p, t, 0.2)),
    "barlow_twins": over_pairs(lambda a, b: 0.1 * numpy_barlow(a, b)),
    "vicreg": over_pairs(numpy_vicreg),
    "emp": lambda views, *_: numpy_emp(np.stack(views, axis=1)),
}


class DoubleNet(PlainNet):
    """Tells the head its precision."""

    dtype: str = "float64"


def recipe_for(method, **changes):
    """An encoder without batch norm, so that views can be encoded one by one."""
    options = {"model.dtype": "float64", "views.number": VIEWS, "penalty.weight": 0.0}
    config = small_config(DATA, method, **options | changes)
    dataset = small_data(DATA)
    own = Own(encoder=DoubleNet())
    config = configuration.describe(config, dataset, own)
    return configuration.from_config(config, dataset, own, axis=None)


def apply(method, name, params, statistics, x):
    outputs, _ = network.train(
        method.modules[name], params[name], statistics[name], x, jax.random.key(0)
    )
    return outputs


def projections(method, params, statistics, images):
    """Of each view by itself; the third is the only one of its batch."""
    z = [apply(method, "encoder", params, statistics, image) for image in images]
    return [apply(method, "head", params, statistics, each) for each in z]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_objective(x64, name):
    constant = {f"{name}.final_momentum": 0.99} if name in ("byol", "moco_v3") else {}
    recipe = recipe_for(name, **constant)
    method, state = recipe.method, create_state(recipe)
    x, key, step = jnp.asarray(rows(DATA)["image"][:16] / 255), jax.random.key(3), 7
    draws = method.draw(jax.random.split(key)[0], x, False)
    third = jax.tree.map(lambda leaf: leaf[:, 0], draws.others)
    images = [method.transform.apply(x, *t) for t in (draws.first, draws.second, third)]
    kept = jax.tree.map(
        lambda p: p + 0.1 * jnp.cos(jnp.arange(p.size).reshape(p.shape)), state.method
    )

    @jax.jit
    def both(params):
        arguments = (params, state.statistics, kept, x)
        value, outcome = method.loss(*arguments, step=step, key=key, penalised=False)
        views = projections(method, params, state.statistics, images)
        predicted, targets = [], views
        if "predictor" in method.modules:
            predicted = [apply(method, "predictor", params, state.statistics, v) for v in views]
        if "params" in kept:
            copied = {module: params[module] for module in ("encoder", "head")}
            slow = jax.tree.map(lambda s, p: 0.99 * s + 0.01 * p, kept["params"], copied)
            targets = projections(method, slow, kept["statistics"], images[:2])
        return value, outcome.terms, views, predicted, targets

    value, terms, *arrays = jax.device_get(both(state.params))
    np.testing.assert_allclose(value, OBJECTIVES[name](*arrays), rtol=1e-10)
    named = terms["contrastive" if name == "simclr" else "objective"]
    np.testing.assert_allclose(named, value, rtol=1e-14)
    assert {"projection_std", "effective_rank", "positive_similarity"} <= terms.keys()
    np.testing.assert_allclose(terms["positive_similarity"], cosine(*arrays[0][:2]), rtol=1e-10)
