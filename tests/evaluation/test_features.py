"""Feature extraction and averaging: the key schedule, one compilation, Eq. of z^(M)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from invclr_jax.evaluation import features
from invclr_jax.transforms.base import Box

KEY = jax.random.key(3)
X = np.random.default_rng(0).integers(0, 256, size=(7, 2, 3, 3), dtype=np.uint8)


@dataclasses.dataclass(frozen=True, eq=False)
class Writing:
    """Writes alpha and beta into the picture, so that an encoder can read them back."""

    alpha: Box = dataclasses.field(default_factory=lambda: Box(np.array([0.0, -1.0]), np.ones(2)))

    def sample(self, key, n):
        uniform = jax.random.uniform(key, (n, 3))
        alpha = self.alpha.low[None] + uniform[:, :2] * (self.alpha.high - self.alpha.low)[None]
        return alpha.astype(jnp.float32), {"turn": uniform[:, 2]}

    def apply(self, x, alpha, beta):
        images = jnp.asarray(x, jnp.float32) / 255
        images = images.at[:, 0, 0, :2].set(alpha)
        return images.at[:, 0, 0, 2].set(beta["turn"])

    def untransformed(self, x):
        return jnp.asarray(x, jnp.float32) / 255


TRANSFORM = Writing()


def encode(images):
    """z = (alpha, beta, a nonlinear function of everything)."""
    return jnp.concatenate([images[:, 0, 0], jnp.sin(images).sum((1, 2))], axis=1)


def test_plain_features():
    z = features.plain_features(encode, TRANSFORM, X, batch_size=3)
    np.testing.assert_allclose(z, encode(TRANSFORM.untransformed(X)), rtol=1e-6)


def test_average_is_the_mean_of_the_separate_features():
    z, alpha = features.transformed_features(encode, TRANSFORM, X, KEY, 5, batch_size=4)
    assert z.shape == (7, 5, 6)
    np.testing.assert_array_equal(z[:, :, :2], alpha)
    average = features.average_features(encode, TRANSFORM, X, KEY, 5, batch_size=4)
    np.testing.assert_allclose(average, z.mean(1), rtol=1e-5)


def test_transformations_are_functions_of_key_image_and_m():
    """Written out: the m-th transformation of image i is drawn from fold_in(fold_in(key, i), m)."""
    z, alpha = features.transformed_features(encode, TRANSFORM, X, KEY, 5, batch_size=4)
    for i in range(len(X)):
        for m in range(5):
            key = jax.random.fold_in(jax.random.fold_in(KEY, i), m)
            a, b = TRANSFORM.sample(key, 1)
            np.testing.assert_allclose(alpha[i, m], a[0], rtol=1e-6)
            expected = encode(TRANSFORM.apply(X[i : i + 1], a, b))[0]
            np.testing.assert_allclose(z[i, m], expected, rtol=1e-5)


@pytest.mark.parametrize("batch_size", [7, 20])
def test_batch_size_changes_nothing(batch_size):
    """Not even where several transformations share a pass."""
    options = {"batch_size": batch_size}
    expected, _ = features.transformed_features(encode, TRANSFORM, X, KEY, 5, batch_size=4)
    z, _ = features.transformed_features(encode, TRANSFORM, X, KEY, 5, **options)
    np.testing.assert_allclose(z, expected, rtol=1e-5)
    average = features.average_features(encode, TRANSFORM, X, KEY, 5, **options)
    np.testing.assert_allclose(average, expected.mean(1), rtol=1e-5)


@pytest.mark.parametrize("batch_size", [4, 20])
def test_one_pass_gives_every_m(batch_size):
    options = {"batch_size": batch_size}
    curve = features.average_features_curve(encode, TRANSFORM, X, KEY, [5, 1, 2, 2, 8], **options)
    assert sorted(curve) == [1, 2, 5, 8]
    separate, _ = features.transformed_features(encode, TRANSFORM, X, KEY, 8, batch_size=4)
    for m, z in curve.items():
        np.testing.assert_allclose(z, separate[:, :m].mean(1), rtol=1e-5)


def test_a_part_of_the_data_has_the_same_features():
    average = features.average_features(encode, TRANSFORM, X, KEY, 5, batch_size=4)
    part = features.average_features(encode, TRANSFORM, X[:4], KEY, 5, batch_size=4)
    np.testing.assert_allclose(part, average[:4], rtol=1e-5)


def test_compiles_once_for_every_m_key_and_weight():
    traced = []

    def apply(weight, images):
        traced.append(images.shape)
        return weight * encode(images)

    def run(weight, key, m):
        encoder = Partial(apply, jnp.asarray(weight))
        return features.average_features(encoder, TRANSFORM, X, key, m, batch_size=3)

    first = run(1.0, KEY, 2)
    count = len(traced)
    again = run(2.0, KEY, 2)
    run(2.0, jax.random.key(4), 9)
    assert len(traced) == count
    assert {shape[0] for shape in traced} == {3}
    np.testing.assert_allclose(again, 2 * first, rtol=1e-6)


def test_work_is_linear_in_m():
    """The encoder sees M·n pictures, and the last batch is filled up: nothing else is computed."""
    seen = []

    def counting(images):
        jax.debug.callback(lambda n: seen.append(int(n)), len(images))
        return encode(images)

    curve = features.average_features_curve(counting, TRANSFORM, X, KEY, [1, 2, 6], batch_size=4)
    jax.block_until_ready(curve)
    jax.effects_barrier()
    assert sum(seen) == 6 * 8


def test_conditional_features_hold_beta_fixed():
    z = features.conditional_features(encode, TRANSFORM, X, KEY, 50, batch_size=20)
    alpha, beta = z[:, :, :2], z[:, :, 2]
    np.testing.assert_array_equal(beta, jnp.broadcast_to(beta[:, :1], beta.shape))
    assert len(np.unique(beta)) == len(X)
    assert len(np.unique(alpha)) == alpha.size
    np.testing.assert_allclose(alpha.mean((0, 1)), TRANSFORM.alpha.mean, atol=0.1)
    np.testing.assert_allclose(alpha.var((0, 1)), TRANSFORM.alpha.variance, rtol=0.2)


def test_variance_of_the_average_falls_as_one_over_m():
    """Var z^(M) = Var z^(1)/M, here over many images with the same picture."""
    x = np.zeros((2000, 1, 1, 3), np.uint8)
    curve = features.average_features_curve(encode, TRANSFORM, x, KEY, [1, 4, 16], batch_size=2000)
    for m, z in curve.items():
        np.testing.assert_allclose(m * z[:, :2].var(0), TRANSFORM.alpha.variance, rtol=0.15)
        np.testing.assert_allclose(z[:, :2].mean(0), TRANSFORM.alpha.mean, atol=0.06)


def test_precision_and_other_kinds_of_input():
    def half(images):
        return encode(images).astype(jnp.bfloat16)

    exact = features.average_features(encode, TRANSFORM, X, KEY, 5, batch_size=4)
    rough = features.average_features(half, TRANSFORM, X, KEY, 5, batch_size=4)
    assert rough.dtype == jnp.float32
    np.testing.assert_allclose(rough, exact, atol=0.05)
    same = features.average_features(encode, TRANSFORM, jnp.asarray(X), KEY, 5, batch_size=4)
    np.testing.assert_array_equal(same, exact)
    old_key = jax.random.PRNGKey(3)
    old = features.average_features(encode, TRANSFORM, X, old_key, 5, batch_size=4)
    np.testing.assert_allclose(old, exact, rtol=1e-6)  # the same key in its older form


def test_features_at_given_transformations():
    z, alpha = features.transformed_features(encode, TRANSFORM, X, KEY, 5, batch_size=4)
    beta = {"turn": z[:, 0, 2]}
    again = features.features_at(encode, TRANSFORM, X, alpha[:, 0], beta, batch_size=4)
    np.testing.assert_allclose(again, z[:, 0], rtol=1e-6)


def test_without_beta():
    class Shift(Writing):
        def sample(self, key, n):
            return super().sample(key, n)[0], None

        def apply(self, x, alpha, beta):
            assert beta is None
            return jnp.asarray(x, jnp.float32) + alpha.sum(1)[:, None, None, None]

    z = features.conditional_features(encode, Shift(), X, KEY, 3, batch_size=7)
    separate, _ = features.transformed_features(encode, Shift(), X, KEY, 3, batch_size=7)
    assert z.shape == separate.shape


def test_progress_counts_every_row():
    rows = []
    features.plain_features(encode, TRANSFORM, X, batch_size=3, progress=rows.append)
    assert sum(rows) == 7


@pytest.mark.parametrize("num", [0, -1])
def test_no_transformation_at_all_is_an_error(num):
    for function in (
        features.average_features,
        features.conditional_features,
        features.transformed_features,
    ):
        with pytest.raises(ValueError, match=rf"{num}: use 1 or more"):
            function(encode, TRANSFORM, X, KEY, num)
    with pytest.raises(ValueError, match=rf"is {num}: use 1 or more"):
        features.average_features_curve(encode, TRANSFORM, X, KEY, [4, num])


def test_other_bad_input_is_a_sentence():
    with pytest.raises(ValueError, match="list of Ms is empty"):
        features.average_features_curve(encode, TRANSFORM, X, KEY, [])
    with pytest.raises(ValueError, match="batch_size is 0"):
        features.plain_features(encode, TRANSFORM, X, batch_size=0)
    with pytest.raises(ValueError, match="number of inputs is 0"):
        features.average_features(encode, TRANSFORM, X[:0], KEY, 1)

    class Always(Writing):
        def untransformed(self, x):
            raise ValueError("this data has no untransformed version")

    with pytest.raises(ValueError, match="no untransformed version"):
        features.plain_features(encode, Always(), X)
