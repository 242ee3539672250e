"""Feature extraction: a ResNet18 in eval mode against PyTorch's, and the cost of averaging."""

import functools
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import Row, has_torch, interleaved, medians
from invclr_jax.checkpoint.encoder import compiled
from invclr_jax.evaluation.features import average_features, plain_features
from invclr_jax.models.resnet import ResNet18
from invclr_jax.transforms.image import ImageTransform

BATCH, NUM_SAMPLES = 256, 32
TARGETS = {"float32": "≥ 1.0×", "bfloat16": "≥ 1.3×"}


def rows(repeats: int) -> list[Row]:
    """Seconds for a batch of 256 pictures, and for averages over 32 transformations."""
    beside = [_beside_torch(repeats, dtype) for dtype in TARGETS] if has_torch() else []
    return [*beside, _averaging(repeats)]


def _encoder(width: int, dtype: str = "float32"):
    module = ResNet18(width=width, dtype=jnp.dtype(dtype))
    variables = jax.jit(module.init)(jax.random.key(0), jnp.zeros((2, 32, 32, 3)))
    return jax.tree_util.Partial(compiled(module), variables)


def _beside_torch(repeats: int, dtype: str) -> Row:
    import torch

    from benchmarks.torch_peer.resnet import ResNet18 as Peer

    torch.set_num_threads(os.cpu_count() or 1)
    images = np.random.default_rng(0).standard_normal((BATCH, 32, 32, 3)).astype(np.float32)
    ours = functools.partial(_encoder(64, dtype), jnp.asarray(images))
    contenders: dict[str, Any] = {"ours": ours}
    for name, layout in (
        ("contiguous", torch.contiguous_format),
        ("channels_last", torch.channels_last),
    ):
        peer: Any = Peer(64).eval()
        peer = peer.to(memory_format=layout)
        inputs = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(memory_format=layout)
        contenders[name] = functools.partial(
            _without_gradient, torch, peer, inputs, dtype == "bfloat16"
        )
    seconds = interleaved(contenders, repeats=repeats)
    found = medians(seconds)
    theirs = min(found["contiguous"], found["channels_last"])
    return Row(
        f"features of {BATCH} pictures, ResNet18, {dtype}",
        found["ours"],
        theirs,
        "PyTorch eval, its faster memory format; bfloat16 by autocast",
        TARGETS[dtype],
        details={"seconds": seconds},
    )


def _without_gradient(torch, peer, inputs, half):
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=half):
        peer(inputs)


def _averaging(repeats: int) -> Row:
    """The time of averaging over 32 transformations compared with 32 plain passes."""
    transform = ImageTransform(32, (0.5, 0.5, 0.5), (0.2, 0.2, 0.2))
    encode = _encoder(16)
    images = np.random.default_rng(0).integers(0, 256, (BATCH, 32, 32, 3), dtype=np.uint8)
    key = jax.random.key(0)

    def plain_passes():
        for _ in range(NUM_SAMPLES):
            plain_features(encode, transform, images, batch_size=BATCH)

    seconds = interleaved(
        {
            "ours": lambda: average_features(
                encode, transform, images, key, NUM_SAMPLES, batch_size=BATCH
            ),
            "plain": plain_passes,
        },
        repeats=repeats,
    )
    found = medians(seconds)
    return Row(
        f"averages over M={NUM_SAMPLES} of {BATCH} pictures, ResNet18 width 16",
        found["ours"],
        found["plain"],
        f"{NUM_SAMPLES} plain passes",
        "≥ 1.0×",
        details={"seconds": seconds},
    )
