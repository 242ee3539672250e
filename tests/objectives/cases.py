"""Encoders for the objectives' tests: those of the golden files, and a tiny one for statistics."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from invclr_jax.parallel import mean_over_devices
from invclr_jax.transforms.base import Box
from invclr_jax.transforms.colour import colour_jitter, greyscale

quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
"""`jax.jit` for programs that run once: compiling is what takes the time here."""

CASES = ("spiro_authors", "spiro_paper", "colour_authors", "colour_paper", "colour_pipeline")


@dataclasses.dataclass(frozen=True)
class Case:
    """One case of penalty.npz or batchnorm_penalty.npz."""

    images: Callable  # alpha [K, a] -> [K, H, W, 3]
    params: dict
    alpha: np.ndarray
    alpha_prime: np.ndarray
    e: np.ndarray
    box: Box


def golden_case(stored, prefix, dtype):
    """The transform of a golden case and its inputs, in the precision asked for."""
    kind, variant = prefix.split("_")
    get = lambda name: stored[name].astype(dtype)  # noqa: E731

    def images(alpha):
        if kind == "spiro":
            return render(get("spiro_x"), alpha, by_row=variant == "authors")
        hue = "paper" if variant == "paper" else "authors"
        jittered = colour_jitter(get("colour_images"), alpha, variant=hue)
        return jittered if variant != "pipeline" else pipeline(jittered)

    def pipeline(jittered):
        jitter, grey = (
            (stored[f"colour_pipeline_{coin}_on"] > 0.5)[:, None, None, None]
            for coin in ("jitter", "grey")
        )
        x = jnp.where(jitter, jittered, get("colour_images"))
        x = jnp.where(grey, greyscale(x), x)
        mean, std = (get(f"colour_pipeline_{s}").reshape(1, 1, 1, 3) for s in ("mean", "std"))
        return (x - mean) / std

    names = {"W1", "W2", "bn_scale", "bn_bias", "bn_eps"} & stored.keys()
    return Case(
        images,
        {name: get(name) for name in names},
        get(f"{kind}_alpha"),
        get(f"{kind}_alpha_prime"),
        get(f"{kind}_e"),
        Box(stored[f"{kind}_lower"], stored[f"{kind}_upper"]),
    )


def golden_encode(params, images):
    """The encoder of the golden files, with batch norm if there are parameters for it."""
    hidden = images.reshape(len(images), -1) @ params["W1"]
    if "bn_scale" in params:
        hidden = batch_norm(hidden, params["bn_eps"])
        hidden = hidden * params["bn_scale"][None] + params["bn_bias"][None]
    return jnp.tanh(hidden) @ params["W2"]


def batch_norm(hidden, eps, axis=None):
    """Batch norm in train mode, without its affine part, over all devices."""
    mean = mean_over_devices(hidden.mean(0, keepdims=True), axis)
    variance = mean_over_devices(((hidden - mean) ** 2).mean(0, keepdims=True), axis)
    return (hidden - mean) / jnp.sqrt(variance + eps)


def render(x, alpha, by_row, size=32):
    """The formula of tests/golden/README.md as it stands, apart from the package's renderer."""
    (m, b, sigma, f_r), (h, f_g, f_b, b_r, b_g, b_b) = (
        jnp.split(jnp.asarray(part)[:, :, None], part.shape[1], axis=1) for part in (x, alpha)
    )
    t = jnp.linspace(0, 2 * np.pi, 40, dtype=alpha.dtype)[None, None]
    u = ((m - h) * jnp.cos(t) + h * jnp.cos((m - h) * t / b))[:, :, None]
    v = ((m - h) * jnp.sin(t) - h * jnp.sin((m - h) * t / b))[:, :, None]
    pixels = jnp.linspace(-6, 6, size, dtype=alpha.dtype)
    squares = (pixels[None, :, None, None] - u) ** 2 + (pixels[None, None, :, None] - v) ** 2
    intensity = jnp.exp(-squares / sigma[:, :, None]).mean(-1)
    brightest = intensity.max(axis=2 if by_row else (1, 2), keepdims=True)
    intensity = (intensity / (brightest + 1e-8))[..., None]
    front, back = (
        jnp.stack(c, axis=-1)[:, :, 0][:, None] for c in ((f_r, f_g, f_b), (b_r, b_g, b_b))
    )
    return intensity * front + (1 - intensity) * back


class Tiny:
    """tanh(x A + alpha B + (x A)(alpha B)) W + offset, with or without batch norm before tanh."""

    def __init__(self, batch_norm, k=8, a=3, hidden=6, d=5, seed=0, offset=0.0):
        rng = np.random.default_rng(seed)
        self.batch_norm = batch_norm
        self.box = Box(np.array([0.5, -1.0, 0.0][:a]), np.array([1.5, 0.5, 0.3][:a]))
        width = self.box.high - self.box.low
        self.alpha = self.box.low + width * rng.random((k, a))
        self.x = rng.normal(size=(k, hidden))
        self.params = {"B": rng.normal(size=(a, hidden)), "W": rng.normal(size=(hidden, d))}
        self.offset = offset

    def represent(self, params, x, alpha, axis=None):
        """z of these rows."""
        moved = alpha @ params["B"]
        hidden = x + moved + x * moved
        if self.batch_norm:
            hidden = batch_norm(hidden, 1e-5, axis)
        return jnp.tanh(hidden) @ params["W"] + self.offset

    def closure(self, params=None):
        """alpha -> z for the whole batch."""
        params = self.params if params is None else params
        return lambda alpha: self.represent(params, jnp.asarray(self.x), alpha)
