"""One traced program lowers for CPUs, GPUs and TPUs; what it becomes there is read, not run."""

import re

import jax
import jax.numpy as jnp
import pytest

from invclr_jax import parallel
from invclr_jax.methods import METHODS
from invclr_jax.models import network
from invclr_jax.models.build import ENCODERS, build_encoder
from invclr_jax.training.step import create_state, pmapped_step
from tests.training.small import rows, small_config, small_recipe

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
DEVICES = 2


def traced_step(method, **overrides):
    """A penalised step on two devices, traced and not lowered for anything yet."""
    overrides = {"batch_size": 8, "model.conv": "auto", "model.width": 16} | overrides
    config = small_config(method=method, **overrides)
    recipe = small_recipe(config, axis=parallel.AXIS, num_devices=DEVICES)
    step = pmapped_step(recipe, True, jax.devices()[:DEVICES])
    state = jax.eval_shape(lambda: create_state(recipe))
    share = jax.ShapeDtypeStruct((config.batch_size // DEVICES,), jnp.int32)
    arguments = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((DEVICES, *leaf.shape), leaf.dtype),
        (state, rows(), share),
    )
    return jax.jit(step).trace(*arguments, jax.eval_shape(lambda: recipe.key))


def lowered(traced, platform):
    return traced.lower(lowering_platforms=(platform,)).as_text()


def calls(text):
    """What a program calls that is not part of XLA's language."""
    return set(re.findall(r"custom_call @(\w+)", text))


def products(text):
    """Lines of convolutions and matrix products."""
    return [line for line in text.splitlines() if re.search(r"\.(convolution|dot_general)", line)]


def precisions(line):
    """Those of a product's two operands."""
    return (
        re.search(r"precision(?:_config)? = \[([^\]]*)\]", line)[1]
        .replace("#stablehlo<precision ", "")
        .replace(">", "")
        .split(", ")
    )


@pytest.fixture
def hurried():
    """JAX as users have it: what asks for no precision gets the fastest."""
    with jax.default_matmul_precision("default"):
        yield


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("method", METHODS)
def test_every_method_lowers_everywhere(method):
    """The model's products follow `model.precision`; losses and transformations are exact."""
    traced = traced_step(method, **{"model.precision": "high"})
    for platform in PLATFORMS:
        text = lowered(traced, platform)
        assert "stablehlo.all_reduce" in text, "gradients are averaged over devices"
        assert "f64" not in text
        assert not {call for call in calls(text) if "callback" in call}
        ours = {call for call in calls(text) if "winograd" in call}
        assert not ours or platform == "cpu", f"{ours} exist on CPUs only"
    found = {name: set() for name in ("convolution", "dot_general")}
    for line in products(text):
        found["convolution" if "convolution" in line else "dot_general"] |= set(precisions(line))
    assert found == {"convolution": {"HIGH"}, "dot_general": {"HIGH", "HIGHEST"}}


@pytest.mark.usefixtures("hurried")
def test_the_default_precision_is_left_to_jax():
    text = lowered(traced_step("simclr"), "tpu")
    convolutions = [line for line in products(text) if "convolution" in line]
    assert {p for line in convolutions for p in precisions(line)} == {"DEFAULT"}


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_lowers_everywhere(name):
    model = {"name": name, "width": 4, "options": {"depth": 2} if "vit" in name else {}}
    encoder = build_encoder(model, image_size=16)
    images = jax.ShapeDtypeStruct((4, 16, 16, 3), jnp.float32)
    params, statistics, _ = jax.eval_shape(
        lambda: network.init(encoder, jax.random.key(0), jnp.zeros(images.shape))
    )
    traced = jax.jit(lambda variables, x: network.evaluate(encoder, variables, x)).trace(
        {"params": params, **statistics}, images
    )
    for platform in PLATFORMS:
        text = lowered(traced, platform)
        assert products(text)
        assert "f64" not in text
        assert not calls(text) or platform == "cpu"


def test_bfloat16_reaches_every_convolution():
    text = lowered(traced_step("simclr", **{"model.dtype": "bfloat16"}), "tpu")
    convolutions = [line for line in products(text) if "convolution" in line]
    assert convolutions
    for line in convolutions:
        assert set(re.findall(r"x(f32|bf16)>", line)) == {"bf16"}, line
