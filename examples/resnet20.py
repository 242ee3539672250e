"""The CIFAR ResNet20 of He et al. (2016) as a user would write it, with torch's weights."""

import jax.numpy as jnp
import numpy as np
from jax import lax, nn
from safetensors.numpy import load_file

MEAN, STD = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]], np.float32)


def conv(w, name, x, stride=1):
    """A 3×3 convolution with torch's weights."""
    kernel = w[f"{name}.weight"].transpose(2, 3, 1, 0)
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, kernel, (stride,) * 2, [(1, 1)] * 2, dimension_numbers=layout
    )


def norm(w, name, x):
    """Batch norm by its running statistics."""
    scale = w[f"{name}.weight"] / np.sqrt(w[f"{name}.running_var"] + 1e-5)
    return (x - w[f"{name}.running_mean"]) * scale + w[f"{name}.bias"]


def block(w, name, x, stride):
    """A basic block."""
    y = nn.relu(norm(w, f"{name}.bn1", conv(w, f"{name}.conv1", x, stride)))
    y = norm(w, f"{name}.bn2", conv(w, f"{name}.conv2", y))
    if stride > 1:  # every second pixel, new channels of zeros before and after
        quarter = y.shape[-1] // 4
        x = jnp.pad(x[:, ::2, ::2], [(0, 0)] * 3 + [(quarter, quarter)])
    return nn.relu(y + x)


def resnet20(w, images):
    """Features `[n, 64]` of pictures in [0, 1], `[n, 32, 32, 3]`."""
    x = nn.relu(norm(w, "bn1", conv(w, "conv1", (images - MEAN) / STD)))
    for stage in (1, 2, 3):
        for index in range(3):
            x = block(w, f"layer{stage}.{index}", x, 2 if stage > 1 and index == 0 else 1)
    return x.mean((1, 2))


def encoder(path):
    """The function images -> features, and the network's own linear layer."""
    w = load_file(path)

    def encode(images):
        return resnet20(w, images)

    def classify(z):
        return np.asarray(z) @ w["linear.weight"].T + w["linear.bias"]

    return encode, classify
