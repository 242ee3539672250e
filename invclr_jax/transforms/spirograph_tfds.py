"""The Spirograph dataset as rendered pictures, for people outside this project.

    import tensorflow_datasets as tfds
    import invclr_jax.transforms.spirograph_tfds  # registers "spirograph"

    builder = tfds.builder("spirograph/paper", data_dir=..., file_format="array_record")
    builder.download_and_prepare()
    source = builder.as_data_source("train")

It needs the renderer, so it lives beside it and not in `invclr_jax.data`. TensorFlow is not needed.
"""

import dataclasses
import io
from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import numpy as np
import tensorflow_datasets as tfds
from jaxtyping import Float32, UInt8
from PIL import Image

from invclr_jax.data.randomness import generator
from invclr_jax.data.spirograph import draw_factors
from invclr_jax.transforms.spirograph import SpirographTransform

CHUNK = 500
"""Pictures rendered at a time."""


@dataclasses.dataclass(kw_only=True)
class SpirographConfig(tfds.core.BuilderConfig):
    """One version of the dataset.

    Attributes:
      seed: of the factors, as in `data.load("spirograph", seed=...)`, and of the nuisances.
      num_train: training pictures.
      num_test: test pictures.
      size: side in pixels.
      normalise: of the intensity, `image` (the paper's) or `row` (the authors' code).
    """

    seed: int = 0
    num_train: int = 100_000
    num_test: int = 20_000
    size: int = 32
    normalise: str = "image"


class Spirograph(tfds.core.GeneratorBasedBuilder):
    """Pictures with their factors of interest (m, b, sigma, f_r) and nuisances (alpha)."""

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS: ClassVar[list[SpirographConfig]] = [
        SpirographConfig(name="paper", description="Intensity divided by the picture's maximum."),
        SpirographConfig(
            name="authors", description="Intensity divided by each row's.", normalise="row"
        ),
    ]

    def _info(self) -> tfds.core.DatasetInfo:
        size = self.builder_config.size
        features = {
            "image": tfds.features.Image(shape=(size, size, 3)),
            "factors": tfds.features.Tensor(shape=(4,), dtype=np.float32),
            "nuisances": tfds.features.Tensor(shape=(6,), dtype=np.float32),
        }
        return tfds.core.DatasetInfo(
            builder=self,
            description="Hypotrochoids with factors of interest m, b, sigma, f_r and nuisances "
            "h, f_g, f_b, b_r, b_g, b_b (Foster, Pukdee and Rainforth, ICLR 2021).",
            features=tfds.features.FeaturesDict(features),
            homepage="https://openreview.net/forum?id=NomEDgIEBwE",
            disable_shuffling=True,  # rows stay in the order of data.load("spirograph")
        )

    def _split_generators(self, manager: Any) -> dict[str, Iterator[tuple[int, dict]]]:
        config = self.builder_config
        sizes = {"train": config.num_train, "test": config.num_test}
        return {part: self._generate_examples(part, num) for part, num in sizes.items()}

    def _generate_examples(self, part: str, num: int) -> Iterator[tuple[int, dict]]:
        config = self.builder_config
        transform = SpirographTransform(size=config.size, normalise=config.normalise)
        factors = draw_factors(config.seed, part, num)
        nuisances = draw_nuisances(transform, config.seed, part, num)
        apply = jax.jit(transform.apply)
        for start in range(0, num, CHUNK):
            rows = slice(start, start + CHUNK)
            pictures = np.asarray(apply(factors[rows], nuisances[rows], None))
            for i, picture in enumerate(np.rint(pictures * 255).astype(np.uint8), start):
                yield i, {"image": _png(picture), "factors": factors[i], "nuisances": nuisances[i]}


def draw_nuisances(
    transform: SpirographTransform, seed: int, part: str, num: int
) -> Float32[np.ndarray, "n 6"]:
    """One alpha for each picture; a longer draw starts with the shorter one."""
    box = transform.alpha
    uniform = generator(seed, f"spirograph nuisances {part}").random((num, box.size))
    return (box.low + (box.high - box.low) * uniform).astype(np.float32)


def _png(picture: UInt8[np.ndarray, "size size 3"]) -> io.BytesIO:
    """A file, because tfds would encode an array with TensorFlow."""
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    file.seek(0)
    return file
