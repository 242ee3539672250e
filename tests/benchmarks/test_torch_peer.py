"""The benchmarks' PyTorch step computes what ours computes, from the same weights and draws."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from invclr_jax import config as configuration
from invclr_jax.models.resnet import ResNet50
from invclr_jax.models.vit import ViT
from invclr_jax.training.step import create_state
from invclr_jax.transforms.geometry import crop_boxes
from invclr_jax.transforms.image import ImageTransform
from invclr_jax.transforms.spirograph import SpirographTransform
from tests.training.small import rows, small_config, small_data, small_recipe

torch = pytest.importorskip("torch")

from benchmarks.torch_peer import resnet, simclr, transforms, vit  # noqa: E402

N = 12


def tensor(array):
    return torch.from_numpy(np.array(array))


def copy_weights(params, module):
    """Flax parameters into PyTorch modules of the same names."""
    names = {"kernel": "weight", "scale": "weight", "bias": "bias"}
    # A transposed dense kernel, and (h, w, in, out) to (out, in, h, w).
    orders = {1: (0,), 2: (1, 0), 4: (3, 2, 0, 1)}
    weights = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        *parents, last = [entry.key for entry in path]
        weights[".".join([*parents, names[last]])] = tensor(leaf.transpose(orders[leaf.ndim]))
    missing, unexpected = module.load_state_dict(weights, strict=False)
    assert not unexpected
    assert not [name for name in missing if not name.endswith(("running_mean", "running_var"))]


def weights_of(module):
    return {name: value.detach().numpy() for name, value in module.named_parameters()}


@pytest.fixture(scope="module")
def step():
    """Our configuration, recipe, weights, batch and key, in float64."""
    with jax.enable_x64(True):
        config = small_config(
            **{
                "model.dtype": "float64",
                "contrastive.loss": "nt_xent",
                "optimizer.rule": "torchlars",
                "penalty.clip": 1000.0,
            }
        )
        recipe = small_recipe(config)
        x, key = jnp.asarray(rows(n=N)["image"], float), jax.random.key(2)
        yield configuration.describe(config, small_data()), recipe, create_state(recipe), x, key


def peer_of(config, method, params, x):
    encoder = resnet.ResNet(resnet.BasicBlock, (1, 1), config.model.width)
    box = method.transform.alpha
    peer = simclr.Trainer(config, np.array(x), box.low, box.high, encoder=encoder)
    peer.network.double()
    copy_weights(params, peer.network)
    return peer


def peer_draws(draws):
    noise = {} if draws.noise is None else draws.noise
    (alpha, _), (alpha2, _) = draws.first, draws.second
    alpha_prime = tensor(noise["alpha_prime"].swapaxes(0, 1)) if noise else None
    e = tensor(noise["e"]) if noise else None
    return simclr.Draws((tensor(alpha), None), (tensor(alpha2), None), alpha_prime, e)


@pytest.mark.parametrize("penalised", [False, True])
def test_an_update_is_ours(step, penalised):
    config, recipe, state, x, key = step
    method = recipe.method
    with jax.enable_x64(True):
        options = {"step": 0, "key": key, "penalised": penalised}
        loss_fn = partial(method.loss, **options)
        gradient = jax.jit(jax.value_and_grad(loss_fn, has_aux=True))
        (loss, outcome), grads = gradient(state.params, state.statistics, state.method, x)
        updates, _ = recipe.tx.update(grads, state.opt_state, state.params)
        changed = optax.apply_updates(state.params, updates)
        draws = method.draw(jax.random.split(key)[0], x, penalised)
    peer = peer_of(config, method, state.params, x)
    before, target = (
        weights_of(peer_of(config, method, p, x).network) for p in (state.params, changed)
    )
    found = peer.update(tensor(x), peer_draws(draws))
    np.testing.assert_allclose(found, loss, rtol=1e-9)
    # The schedule of this recipe begins at its base learning rate, the peer's only one.
    for name, value in weights_of(peer.network).items():
        np.testing.assert_allclose(
            value - before[name], target[name] - before[name], rtol=1e-6, atol=1e-12, err_msg=name
        )
    if penalised:
        weighted = config.penalty.weight * outcome.terms["penalty"]
        assert 0.01 * loss < weighted < config.penalty.clip


def test_bottlenecks_are_ours(x64):
    module = ResNet50(width=4, conv="xla", dtype=jnp.float64)
    images = np.random.default_rng(0).random((4, 8, 8, 3))
    variables = jax.jit(module.init)(jax.random.key(0), images)
    peer = resnet.ResNet50(4).double().eval()
    copy_weights(variables["params"], peer)
    with torch.inference_mode():
        found = peer(tensor(images).permute(0, 3, 1, 2))
    np.testing.assert_allclose(found, jax.jit(module.apply)(variables, images), rtol=1e-9)


def test_transformers_are_ours(x64):
    size, patch = 8, 4
    module = ViT(heads=2, depth=2, width=8, patch=patch, dtype=jnp.float64)
    images = np.random.default_rng(0).random((4, size, size, 3))
    variables = jax.jit(module.init)(jax.random.key(0), images)
    params = {
        name: dict(leaf) if hasattr(leaf, "items") else leaf
        for name, leaf in variables["params"].items()
    }
    kernel, bias = params.pop("patches"), params.pop("patches_bias")
    params["embed"] = {"kernel": kernel.reshape(patch, patch, 3, -1), "bias": bias}
    params["blocks"] = {str(index): params.pop(f"block{index}") for index in range(2)}
    peer = vit.ViTTiny(8, size, heads=2, depth=2, patch=patch).double().eval()
    copy_weights(params, peer)
    with torch.inference_mode():
        found = peer(tensor(images).permute(0, 3, 1, 2))
    expected = jax.jit(module.apply)(variables, images)
    # Its positions are kept in float32.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_views_of_images_are_ours(x64):
    images = np.random.default_rng(0).integers(0, 256, (N, 8, 8, 3), dtype=np.uint8)
    transform = ImageTransform(8, (0.5, 0.4, 0.3), (0.2, 0.25, 0.3))
    alpha, beta = transform.sample(jax.random.key(3), N)
    coins = [tensor(coin) for coin in (beta.flip, beta.jitter, beta.grey)]
    assert all(0 < coin.sum() < N for coin in coins)
    theirs = transforms.Beta(tensor(crop_boxes(beta.crops, 8, 8)).double(), *coins)
    peer = transforms.Images(8, transform.mean, transform.std)
    found = peer.apply(tensor(images).permute(0, 3, 1, 2), tensor(alpha), theirs)
    expected = transform.apply(images / 255, alpha, beta)
    np.testing.assert_allclose(found.permute(0, 2, 3, 1), expected, atol=1e-12)


def test_crops_stay_inside_and_vary():
    torch.manual_seed(0)
    x = torch.zeros(500, 3, 32, 32)
    boxes = transforms.Images(32, (0, 0, 0), (1, 1, 1)).sample_beta(x).boxes.numpy()
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, :2] + boxes[:, 2:] <= 32).all()
    area = boxes[:, 2:].prod(1) / 32**2
    assert 0.07 < area.min() < 0.15
    assert 0.9 < area.max() <= 1


def test_views_of_spirograph_are_ours(x64):
    transform = SpirographTransform(size=8)
    x = transform.x.sample(jax.random.key(0), N)
    alpha, _ = transform.sample(jax.random.key(1), N)
    found = transforms.Spirograph(8).apply(tensor(x), tensor(alpha))
    np.testing.assert_allclose(
        found.permute(0, 2, 3, 1), transform.apply(x, alpha), rtol=1e-9, atol=1e-12
    )
