"""Trains a network of your own: any Flax module from images to `[n, d]`.

    python -m examples.own_encoder

The config fills in everything that is not given: data, transformation, SimCLR, its head, the
penalty. The class lives in a module, so the checkpoint records its import path and its fields, and
`load_encoder` makes it again for those who trust the package it is in.
"""

import tempfile

import flax.linen as nn
import jax
import optax

import invclr_jax as ic


class Small(nn.Module):
    """Two strided convolutions and a mean over pixels."""

    width: int = 16

    @nn.compact
    def __call__(self, images):
        """Features `[n, 2 width]` of images."""
        x = images
        for channels in (self.width, 2 * self.width):
            x = nn.relu(nn.GroupNorm(num_groups=4)(nn.Conv(channels, (3, 3), strides=2)(x)))
        return x.mean((1, 2))


def main():
    """Trains for a few steps, loads the encoder again and uses it."""
    config = ic.load_config("spirograph_cpu")
    config.num_steps, config.log.every_steps = 20, 10
    config.data.num_train, config.data.num_test = 1000, 200
    with tempfile.TemporaryDirectory() as workdir:
        ic.train(config, workdir, encoder=Small(width=8), tx=optax.adam(1e-3))
        encoder = ic.load_encoder(workdir, trust=("examples",))
    data = ic.load_data("spirograph", num_train=1000, num_test=200)
    z = encoder.represent(data.test.images, jax.random.key(0), num_samples=4)
    print(f"{encoder.module}\nfeatures {z.shape} of step {encoder.step}")


if __name__ == "__main__":
    from examples.own_encoder import main as importable  # the class is then not of __main__

    importable()
