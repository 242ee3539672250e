"""Makes a frozen encoder more invariant with a small network after it, without labels.

python -m examples.adapt
"""

import jax
import jax.numpy as jnp
import numpy as np

import invclr_jax as ic
from invclr_jax.evaluation.correlations import canonical_correlations
from invclr_jax.training.adapter import AdapterSettings
from invclr_jax.transforms.image import ImageTransform

TRANSFORM = ImageTransform(
    16, (0, 0, 0), (1, 1, 1), crop=False, flip=False, grey_probability=0, penalised=("colour",)
)


def encode(images):
    """A frozen encoder: mean colours of sixteen squares."""
    squares = images.reshape(len(images), 4, 4, 4, 4, 3)
    return jnp.asarray(squares).mean((2, 4)).reshape(len(images), -1)


def agreement(encoder, images):
    """Mean canonical correlation between two views of images that no adapter saw."""
    views = (TRANSFORM.sample(jax.random.key(seed), len(images)) for seed in (1, 2))
    z, z_prime = (encoder.encode(TRANSFORM.apply(images, *view)) for view in views)
    return float(canonical_correlations(z, z_prime).mean())


def main():
    """Adapts, and measures on other pictures."""
    rng = np.random.default_rng(0)
    images = rng.uniform(0, 1, (1000, 4, 4, 3)).repeat(4, axis=1).repeat(4, axis=2)
    images = images.astype(np.float32)
    settings = AdapterSettings(keep=0.1, steps=300, batch_size=128)
    adapted = ic.adapt(encode, images[:600], TRANSFORM, settings=settings)
    before = agreement(ic.Encoder.from_function(encode, TRANSFORM), images[600:])
    print(f"canonical correlation {before:.3f} -> {agreement(adapted, images[600:]):.3f}")


if __name__ == "__main__":
    main()
