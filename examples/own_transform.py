"""Makes features invariant to a transformation of your own: fog of any density and colour.

    python -m examples.own_transform

alpha, the density, is what the penalty differentiates in; beta, the grey of the fog, is only
random. `Compose` puts transformations after each other, `frozen` hides one from the penalty.
"""

import tempfile

import jax
import jax.numpy as jnp
import numpy as np

import invclr_jax as ic
from invclr_jax.transforms.effects import Blur


class Fog:
    """Mixes pictures with grey."""

    alpha = ic.Box(low=np.array([0.0]), high=np.array([0.7]))

    def sample(self, key, n):
        """Densities `[n, 1]` and greys `[n]`."""
        alpha_key, beta_key = jax.random.split(key)
        return self.alpha.sample(alpha_key, n), jax.random.uniform(beta_key, (n,))

    def apply(self, x, alpha, beta):
        """Foggy pictures."""
        density, grey = alpha[:, :, None, None], beta[:, None, None, None]
        return (1 - density) * self.untransformed(x) + density * grey

    def untransformed(self, x):
        """Pictures in [0, 1]."""
        return x / 255 if x.dtype == jnp.uint8 else x


def main():
    """Trains for a few steps and measures how much the features notice the fog."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (300, 4, 4, 3), np.uint8).repeat(4, axis=1).repeat(4, axis=2)
    data = ic.Dataset("squares", ic.Split(images[:200]), ic.Split(images[200:]))
    transform = ic.Compose([ic.frozen(Blur()), Fog()])
    config = ic.load_config("cifar10_cpu")
    config.num_steps, config.batch_size, config.log.every_steps = 20, 64, 10
    with tempfile.TemporaryDirectory() as workdir:
        ic.train(config, workdir, transform=transform, dataset=data)
        encoder = ic.load_encoder(workdir, transform=transform)
    scores = ic.evaluate(encoder, data, ["invariance"])
    print(f"V_cond/V_total {scores['invariance/ratio']:.3f}")


if __name__ == "__main__":
    main()
